"""C++ kernels for CPUs, compiled where they run: recurrent cells, softmax, character encoder."""
