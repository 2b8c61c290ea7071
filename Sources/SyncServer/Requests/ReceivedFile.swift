/// A file as it arrived in an upload.
struct ReceivedFile: Codable, Sendable, Hashable {
    /// The name that the client gave.
    var name: String
    /// The folder below `input/`.
    var folder: String
    var size: Int64
    /// Of the bytes that are on the server's disk: computed while they were written, before the fsync.
    var sha256: String
    /// Whether the client had announced this hash.
    var isVerified: Bool

    private enum CodingKeys: String, CodingKey {
        case name, folder, size, sha256
        case isVerified = "verified"
    }
}
