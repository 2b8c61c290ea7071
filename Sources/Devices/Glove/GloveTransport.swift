package import Platform
package import Timing

/// Why a glove can't be had now.
package struct GloveFault: Error, Sendable, Hashable, CustomStringConvertible {
    package var code: DeviceError.Code
    /// "no left glove was heard within 10 s".
    package var cause: String
    package var cure: String
    /// Trying again won't help.
    package var isFinal: Bool

    package init(_ code: DeviceError.Code, _ cause: String, cure: String, isFinal: Bool = false) {
        self.code = code
        self.cause = cause
        self.cure = cure
        self.isFinal = isFinal
    }

    package var description: String { "\(cause); \(cure)" }
}

/// What comes from a connected glove; on the loop's thread.
package enum GloveEvent: Sendable {
    /// The readings of one packet, the oldest first, and when it was read; host time.
    case readings([GloveReading], arrival: Timestamp<HostTime>)
    /// A packet that can't be read.
    case malformed(String)
    case note(String)
    /// The connection is gone; nothing follows.
    case ended(String)
}

/// A glove that is connected and told to send.
package struct GloveConnection: Sendable {
    package var configuration: GloveConfiguration
    /// Address, or the stable path of a USB port: what never changes of this glove.
    package var identity: String
    /// For a person: over what, with which parameters.
    package var link: String
    /// Percent; nil when it isn't told.
    package var battery: Int?
    /// What is known of the delays on the way.
    package var path: DeviceClock.Path
    /// Rows a second of a kind; nil when the glove has none of it.
    package var rate: @Sendable (GloveModality) -> Double?
    /// Ends it; no event follows the return.
    package var close: @Sendable () async -> Void

    package init(
        configuration: GloveConfiguration, identity: String, link: String, battery: Int?, path: DeviceClock.Path,
        rate: @escaping @Sendable (GloveModality) -> Double?, close: @escaping @Sendable () async -> Void
    ) {
        self.configuration = configuration
        self.identity = identity
        self.link = link
        self.battery = battery
        self.path = path
        self.rate = rate
        self.close = close
    }
}

/// A way to a glove: over the air or over USB.
package protocol GloveTransport: Sendable {
    /// Of the configuration, for a person.
    var label: String { get }

    /// Finds the glove, connects, reads its configuration, checks its side, and makes it send.
    ///
    /// Gives up within `patience`. The handler is called on the loop's thread, and may be before the return.
    func connect(
        as side: GloveSide, claims: any GloveClaims, within patience: Interval, on loop: EventLoop,
        _ handler: @escaping @Sendable (GloveEvent) -> Void
    ) async throws(GloveFault) -> GloveConnection
}

/// Who has which glove, over all gloves of an agent.
package protocol GloveClaims: Sendable {
    /// False when another one has it.
    func claim(_ identity: String) -> Bool
    /// Those that another one has.
    var taken: Set<String> { get }
    /// The one that was had before; a lost link comes back to the same glove and to no other.
    var pinned: String? { get }
}
