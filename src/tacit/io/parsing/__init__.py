"""What readers of files share."""
