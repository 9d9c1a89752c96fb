"""What commands share: arguments, output, rows."""
