package import Platform

/// Why a link ended: a reason of HCI (Core specification, Vol 1 Part F), or what the socket said.
package enum DisconnectReason: Sendable, Hashable, CustomStringConvertible {
    case hci(UInt8)
    case socket(Errno)
    /// This program ended it.
    case local
    /// The packets of the device break the protocol.
    case protocolFault(String)

    /// Whether it was meant to end: by this program.
    package var isIntended: Bool { self == .local || self == .hci(0x16) }

    package var description: String {
        switch self {
        case .local: "this program ended it"
        case .protocolFault(let what): what
        case .socket(let error):
            switch error.rawValue {
            case 104, 32, 0: "the device closed the connection"  // ECONNRESET, EPIPE
            case 110: "nothing was heard from the device any more (out of range, or its battery is empty)"  // ETIMEDOUT
            case 111: "the device wasn't heard, or refused the connection"  // ECONNREFUSED
            case 112: "the adapter was switched off"  // EHOSTDOWN
            case 113: "the device can't be reached"  // EHOSTUNREACH
            case 103: "the connection was aborted by this machine's kernel"  // ECONNABORTED
            default: "\(error)"
            }
        case .hci(let code): Self.words[code] ?? "reason 0x\(String(code, radix: 16))"
        }
    }

    private static let words: [UInt8: String] = [
        0x05: "the authentication failed",
        0x06: "the device has lost its pairing key, or this machine has: pair anew",
        0x07: "the device has no memory left",
        0x08: "nothing was heard from the device any more (out of range, or its battery is empty)",
        0x09: "the adapter has reached its limit of connections",
        0x0C: "the adapter refused the command in its present state",
        0x0D: "the device has no resources for a connection",
        0x0E: "the device refused it for security",
        0x10: "the device didn't accept the connection in time",
        0x13: "the device ended it",
        0x14: "the device ended it: it is low on resources",
        0x15: "the device ended it: it is switching off",
        0x16: "this machine ended it",
        0x1A: "the device doesn't support a feature that was asked for",
        0x1F: "an unspecified error",
        0x22: "the device didn't answer its radio protocol in time",
        0x28: "an instant of the radio protocol has passed",
        0x29: "pairing with a unit key isn't supported",
        0x2A: "two procedures of the radio protocol collided",
        0x3B: "the device doesn't accept the connection parameters",
        0x3D: "the encryption check failed: pair anew",
        0x3E: "the connection could not be established: the device didn't answer its first packets",
        0x44: "the operation was cancelled by this machine",
    ]
}
