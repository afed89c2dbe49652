"""What is asked: convolutions and normalisations as checked data, and their sums, obviously right. No kernels."""
