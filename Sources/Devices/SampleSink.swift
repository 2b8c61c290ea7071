package import Protocol
package import Timing

/// Where a device puts what it has.
///
/// Both calls come on the device's own thread, return at once and never block.
package protocol SampleSink: Sendable {
    func deliver(_ sample: Sample)
    func report(_ event: DeviceEvent)
}

/// What a device has to say beside its samples.
package enum DeviceEvent: Sendable, Hashable {
    /// Samples that the hardware or the driver lost, before the sample with the stamp `before`.
    case lost(count: Int64, before: Timestamp<HostTime>)
    /// Nothing was captured between two instants (an overrun, an unplug).
    case gap(from: Timestamp<HostTime>, to: Timestamp<HostTime>, cause: String)
    /// Nothing comes since an instant, and the device tries to come back: a `gap` and an `epoch` follow when it has, and
    /// `failed` when it gives up.
    case interrupted(since: Timestamp<HostTime>, cause: String)
    /// The samples after this are of a new stretch, or the running one is described better.
    case epoch(StreamEpoch)
    /// The device is gone or broken for good; no sample follows.
    case failed(String)
    /// What was measured of the device's own clock; the last one counts.
    case clock(DeviceClockReport)
    /// A fact for the log and the verdict.
    case note(String)
}

/// A stretch of a stream in which counters, stamps and format go on without a break.
package struct StreamEpoch: Sendable, Hashable {
    /// From 0, counted from the start of the device; the same number again is a better description of it.
    package var number: Int
    /// The stamp of its first sample.
    package var start: Timestamp<HostTime>
    /// Why it began, in words.
    package var cause: String
    /// What is true of the stream from here on.
    package var description: StreamDescription

    package init(number: Int, start: Timestamp<HostTime>, cause: String, description: StreamDescription) {
        self.number = number
        self.start = start
        self.cause = cause
        self.description = description
    }
}
