"""What graphs for the host compute in another way while they are trained."""
