/// How far the upload of one episode to one server is.
package enum UploadState: String, Sendable, CaseIterable {
    case waiting, uploading, processing, complete, failed
}

/// A row of the upload queue.
package struct UploadEntry: Sendable, Hashable {
    package let session: String
    package let episode: String
    /// The server's URL without a slash at its end.
    package let server: String
    package var state: UploadState = .waiting
    /// Failed tries since the upload was last begun.
    package var attempts: Int = 0
    package var job: String?
    /// Names exactly the bytes that were sent: it changes when a file of the episode does.
    package var uploadKey: String?
    /// Whether the server has reported each file with its sha256.
    package var isConfirmed = false
    package var lastError: String?

    package init(session: String, episode: String, server: String) {
        self.session = session
        self.episode = episode
        self.server = server
    }
}
