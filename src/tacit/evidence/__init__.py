"""What is observed: columns of any library, labels, likelihoods."""
