"""What loops on the CPU and on the GPU need to know about a kernel."""
