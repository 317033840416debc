//! How deep, how wide, with how few descriptors, on how small a stack.

