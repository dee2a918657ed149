"""What loops on CPUs and GPUs need to know of a kernel, and of the arrays that it gets."""
