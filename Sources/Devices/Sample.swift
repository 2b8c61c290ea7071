package import Platform
package import Timing

/// One datum with the stamps that it came with.
///
/// Nothing of it is ever written over.
package struct Sample: Sendable {
    package enum Payload: Sendable {
        /// One video frame or access unit, in the encoding of the stream's description.
        case frame(FrameBytes, isKey: Bool)
        /// Interleaved PCM; the stamp is that of the first sample frame.
        case audio([UInt8], frames: Int)
        /// One row of a sensor, in the order of its channels.
        case values([Double])
    }

    package var payload: Payload
    /// The best that is known of when it was taken, host time.
    package var capture: Timestamp<HostTime>
    /// How far `capture` may be off.
    package var uncertainty: Interval
    /// When this program got it.
    package var arrival: Timestamp<HostTime>
    /// What the hardware said, unchanged; nil when it says nothing.
    package var device: Timestamp<DeviceTime>?
    /// The driver's or the device's counter, unchanged; nil when there is none.
    package var sequence: Int64?
    /// Silence that stands where nothing was captured, since the configuration asks for it.
    package var isFilling: Bool

    package init(
        payload: Payload, capture: Timestamp<HostTime>, uncertainty: Interval, arrival: Timestamp<HostTime>,
        device: Timestamp<DeviceTime>? = nil, sequence: Int64? = nil, isFilling: Bool = false
    ) {
        self.payload = payload
        self.capture = capture
        self.uncertainty = uncertainty
        self.arrival = arrival
        self.device = device
        self.sequence = sequence
        self.isFilling = isFilling
    }
}
