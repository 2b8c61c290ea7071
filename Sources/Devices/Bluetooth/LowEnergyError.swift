/// Why something with a low-energy device didn't come to pass; each is half a sentence for a person.
package enum LowEnergyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The machine can't do it now: cause and cure.
    case unavailable(cause: String, cure: String)
    case notFound(String)
    /// The link is gone, or never came about.
    case disconnected(DisconnectReason)
    /// No answer in time; the number is seconds.
    case noAnswer(to: String, after: Double)
    case refused(ATTErrorCode, request: UInt8, handle: UInt16)
    /// The answer doesn't fit the request, or breaks the protocol.
    case malformed(String)
    /// More requests wait than is sensible.
    case busy

    package var description: String {
        switch self {
        case .unavailable(let cause, let cure): "\(cause); \(cure)"
        case .notFound(let what): what
        case .disconnected(let reason): "the link is gone: \(reason)"
        case .noAnswer(let request, let seconds): "no answer to \(request) within \(seconds) s"
        case .refused(let code, let request, let handle):
            "request 0x\(String(request, radix: 16)) for handle \(handle) was refused: \(code)"
        case .malformed(let what): what
        case .busy: "too many requests wait for the device"
        }
    }
}
