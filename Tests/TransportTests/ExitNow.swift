internal import Glibc

/// Ends this process as a program that returns from its main function does.
func exitNow(_ code: Int32) -> Never { exit(code) }
