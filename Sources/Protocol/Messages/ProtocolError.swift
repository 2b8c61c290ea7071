/// What can be wrong with bytes from the network.
package enum ProtocolError: Error, Sendable, Hashable, CustomStringConvertible {
    case notDownbeat
    case wrongVersion(UInt8)
    case unknownKind(String)
    case malformed(kind: String, reason: String)
    case tooLarge(part: String, bytes: Int, limit: Int)

    package var description: String {
        switch self {
        case .notDownbeat: "not a Downbeat message"
        case .wrongVersion(let version):
            "the other side speaks protocol version \(version), this one \(ProtocolVersion.current); "
                + "install the same version of Downbeat on all hosts"
        case .unknownKind(let name): "unknown kind of message '\(name)'"
        case .malformed(let kind, let reason): "malformed message '\(kind)': \(reason)"
        case .tooLarge(let part, let bytes, let limit): "\(part) of \(bytes) bytes is above the limit of \(limit)"
        }
    }

    /// The command id of the message that couldn't be read doesn't matter here: this is what is answered.
    package var refusal: Refusal {
        switch self {
        case .wrongVersion: Refusal(.wrongVersion, description)
        case .unknownKind: Refusal(.unknownKind, description)
        default: Refusal(.malformed, description)
        }
    }
}
