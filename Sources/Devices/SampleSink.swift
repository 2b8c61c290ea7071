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
    /// The device is gone or broken for good; no sample follows.
    case failed(String)
    /// What was measured of the device's own clock; the last one counts.
    case clock(DeviceClockReport)
    /// A fact for the log and the verdict.
    case note(String)
}
