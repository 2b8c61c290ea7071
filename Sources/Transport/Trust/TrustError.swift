/// What can be wrong with the files that say who is trusted.
package enum TrustError: Error, Sendable, Hashable, CustomStringConvertible {
    case unreadable(file: String, reason: String, cure: String)

    package var description: String {
        switch self {
        case .unreadable(let file, let reason, let cure): "\(file) can't be used: \(reason); \(cure)"
        }
    }
}
