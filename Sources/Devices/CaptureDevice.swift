package import Protocol
package import Timing

/// One device that gives one stream.
///
/// The life of it: `open` → (`start` → `stop`)… → `close`. The agent calls these in order and one at a time; each may
/// suspend, none blocks a thread of the cooperative pool. `stop` and `close` never fail: they let go of all handles.
package protocol CaptureDevice: Sendable {
    var stream: StreamID { get }

    /// What the configuration names of hardware that one host at most can have, as over the air: its kind and address.
    ///
    /// Nil when it is this machine's own, or when the configuration leaves it open.
    var hardware: String? { get }

    /// Opens and negotiates; says what will be delivered. Throws `DeviceError`.
    func open() async throws -> StreamDescription

    /// Begins to deliver into the sink, on the device's own thread.
    func start(_ sink: any SampleSink) async throws

    /// Ends the delivery: after the return no call reaches the sink.
    func stop() async

    func close() async
}

extension CaptureDevice {
    package var hardware: String? { nil }
}

/// A device that plays sound at an instant.
package protocol ChirpSpeaker: Sendable {
    /// For a person: which speaker this is.
    var label: String { get }

    /// Opens and negotiates; gives back the rate at which samples must be handed in, Hz.
    func open() async throws -> Int

    /// Plays mono samples (−1…1) so that the first one leaves at an instant, as nearly as the device can.
    ///
    /// - Returns: when it really left, and how that is known.
    func play(_ samples: [Float], at instant: Timestamp<HostTime>) async throws -> Emission

    func close() async
}

/// When the first sample of a sound left the speaker.
package struct Emission: Sendable, Hashable {
    package var instant: Timestamp<HostTime>
    package var uncertainty: Interval
    package var source: ChirpSource

    package init(instant: Timestamp<HostTime>, uncertainty: Interval, source: ChirpSource) {
        self.instant = instant
        self.uncertainty = uncertainty
        self.source = source
    }
}
