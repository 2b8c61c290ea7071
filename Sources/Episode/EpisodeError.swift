package import Platform

/// What went wrong with a file of an episode, and what can be done: one sentence.
package struct EpisodeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file.
    package let path: String
    package let cause: String
    package let cure: String?
    /// The system's reason, where it was one: a full disk is told from a broken one by it.
    package let errno: Errno?

    package init(_ path: String, _ cause: String, cure: String? = nil, errno: Errno? = nil) {
        self.path = path
        self.cause = cause
        self.cure = cure
        self.errno = errno
    }

    package var description: String { "\(path): \(cause)" + (cure.map { "; \($0)" } ?? "") }
}
