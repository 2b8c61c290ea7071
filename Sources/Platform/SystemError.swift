/// A failed system call with what was being done: "opening /x/y: No such file or directory".
package struct SystemError: Error, Sendable, CustomStringConvertible {
    package let errno: Errno
    package let operation: String

    package init(_ errno: Errno, _ operation: String) {
        self.errno = errno
        self.operation = operation
    }

    package var description: String { "\(operation): \(errno)" }
}
