internal import Platform
internal import Protocol
internal import Synchronization
internal import Timing

/// Puts into words who was turned away, at a bounded rate.
///
/// Concurrency: the ZAP handler's loop and the server's use it; the state is in one `Mutex`.
final class ServerReporter: Sendable {
    /// Our own program makes about five tries a second while it comes up, so fewer within `quietSpan` are no news.
    private static let quietLimit = 5
    private static let quietSpan = Interval.seconds(10)

    private let prefix: String
    private let extra: (@Sendable (String) -> Void)?
    private let log = Log("transport")
    private let state = Mutex((limiter: NoticeLimiter(), denied: 0, quiet: [Timestamp<HostTime>]()))

    init(host: HostID?, extra: (@Sendable (String) -> Void)?) {
        prefix = host.map { "host \($0): " } ?? ""
        self.extra = extra
    }

    var deniedCount: Int { state.withLock { $0.denied } }

    func notice(_ text: String, subject: String) {
        let line = state.withLock { $0.limiter.admit(prefix + text, subject: subject, at: HostClock.now) }
        guard let line else { return }
        log.warning(line)
        extra?(line)
    }

    /// The ZAP handler said no.
    func denied(address: String, key: CurveKey?) {
        state.withLock { $0.denied += 1 }
        guard let key else {
            notice("\(address) tried to connect without a key; refused", subject: "denied \(address)")
            return
        }
        notice(
            "wrong key: \(address) came with key \(key.fingerprint), which isn't a coordinator that this host trusts; "
                + "refused. To trust it: 'downbeat invite' there and 'downbeat-agent join TOKEN' here",
            subject: "denied \(address) \(key.fingerprint)")
    }

    /// A connection ended in its handshake; its address is nil when it was gone before it could be read.
    func failed(_ failure: ZMQMonitor.Failure, address: String?, fingerprint: String) {
        guard address != nil || isNews(at: HostClock.now) else { return }
        let address = address ?? "somebody who is always gone before the address can be read"
        switch failure {
        case .refused: break  // The ZAP handler has said it, with the key.
        case .cryptographic:
            notice(
                "wrong key: \(address) expects another key here than \(fingerprint), which is this host's; refused. "
                    + "When this host was installed anew, pair it again: 'downbeat invite' there and "
                    + "'downbeat-agent join TOKEN' here",
                subject: "cryptographic \(address)")
        case .mechanismMismatch:
            notice("\(address) tried to connect without encryption; refused", subject: "mechanism \(address)")
        case .cut:
            // Our own coordinator does so all the time: it tries every address at once and keeps the one that answers.
            log.debug("\(prefix)\(address) left in the handshake")
        case .malformed:
            notice("\(address) connected and didn't speak our protocol; cut off", subject: "malformed \(address)")
        }
    }

    private func isNews(at now: Timestamp<HostTime>) -> Bool {
        state.withLock { state in
            state.quiet.removeAll { now - $0 > Self.quietSpan }
            state.quiet.append(now)
            if state.quiet.count > Self.quietLimit { state.quiet.removeFirst() }
            return state.quiet.count >= Self.quietLimit
        }
    }
}
