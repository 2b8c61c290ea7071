internal import CAvahi
internal import Glibc
internal import Platform
internal import Timing

/// The connection to the system's avahi-daemon, kept alive: it is made anew when the daemon or the D-Bus went away.
///
/// Concurrency: everything runs on the loop's thread, which is what makes `@unchecked Sendable` true. `close()` comes
/// before the last reference goes.
final class AvahiConnection: @unchecked Sendable {
    enum Change: Sendable {
        /// The daemon is there and has its host name: services may be registered and browsed for with `client`.
        case up
        /// The daemon looks for another host name: registered services are to be withdrawn until the next `up`.
        case renaming
        /// Everything that was made with the client is gone or must go, now. With the cause and the cure.
        case down(String)
    }

    private static let retryPause = Interval.milliseconds(500)

    private let loop: EventLoop
    private let adapter: AvahiPollAdapter
    private let handler: (Change) -> Void
    /// The client; nil while there is no D-Bus.
    private(set) var client: OpaquePointer?
    private var isOpen = false
    /// What was reported last, so that an absence of hours is one report.
    private var reportedDown = false
    private var retry: EventLoop.TimerID?

    init(loop: EventLoop, handler: @escaping (Change) -> Void) {
        self.loop = loop
        self.handler = handler
        adapter = AvahiPollAdapter(loop: loop)
    }

    func open() {
        guard !isOpen else { return }
        isOpen = true
        connect()
    }

    func close() {
        isOpen = false
        if let retry { loop.cancel(retry) }
        retry = nil
        free()
    }

    private func connect() {
        guard isOpen, client == nil else { return }
        var error: Int32 = 0
        // The callback runs before this returns, and more than once later.
        let made = avahi_client_new(
            adapter.poll, AVAHI_CLIENT_NO_FAIL, clientChanged, Unmanaged.passUnretained(self).toOpaque(), &error)
        guard let made else {
            client = nil
            report("no D-Bus to reach avahi-daemon by (\(AvahiText.of(error)))")
            reconnectLater()
            return
        }
        client = made
    }

    /// Another try after a pause, outside of any callback of the client that is to be freed.
    private func reconnectLater() {
        guard retry == nil else { return }
        retry = loop.schedule(at: HostClock.now + Self.retryPause) { [weak self] in
            guard let self else { return }
            retry = nil
            free()
            connect()
        }
    }

    private func free() {
        if let client { avahi_client_free(client) }
        client = nil
    }

    fileprivate func changed(_ client: OpaquePointer, to state: AvahiClientState) {
        // An event of a client that is being replaced says nothing any more.
        if let current = self.client, current != client { return }
        self.client = client
        switch state {
        case AVAHI_CLIENT_S_RUNNING:
            reportedDown = false
            handler(.up)
        case AVAHI_CLIENT_S_REGISTERING, AVAHI_CLIENT_S_COLLISION:
            handler(.renaming)
        case AVAHI_CLIENT_CONNECTING:
            report("avahi-daemon isn't running")
        default:
            report("avahi-daemon went away (\(AvahiText.of(avahi_client_errno(client))))")
            reconnectLater()
        }
    }

    private func report(_ cause: String) {
        guard !reportedDown else { return }
        reportedDown = true
        handler(
            .down("\(cause): start it with 'systemctl start avahi-daemon', or name the hosts in the rig's static list"))
    }
}

private func clientChanged(_ client: OpaquePointer?, _ state: AvahiClientState, _ userdata: UnsafeMutableRawPointer?) {
    guard let client, let userdata else { return }
    Unmanaged<AvahiConnection>.fromOpaque(userdata).takeUnretainedValue().changed(client, to: state)
}

/// Avahi's words.
enum AvahiText {
    /// The text of an error number.
    ///
    /// The corresponding C function is `avahi_strerror`.
    static func of(_ error: Int32) -> String { avahi_strerror(error).map { String(cString: $0) } ?? "error \(error)" }
}
