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
    /// What is wrong with it.
    package var flags: SampleFlags
    /// Silence that stands where nothing was captured, since the configuration asks for it.
    package var isFilling: Bool

    package init(
        payload: Payload, capture: Timestamp<HostTime>, uncertainty: Interval, arrival: Timestamp<HostTime>,
        device: Timestamp<DeviceTime>? = nil, sequence: Int64? = nil, flags: SampleFlags = [],
        isFilling: Bool = false
    ) {
        self.payload = payload
        self.capture = capture
        self.uncertainty = uncertainty
        self.arrival = arrival
        self.device = device
        self.sequence = sequence
        self.flags = flags
        self.isFilling = isFilling
    }
}

/// What is wrong with a sample; it is kept all the same, with its raw stamp.
package struct SampleFlags: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `capture` is the arrival: the hardware's stamp is missing, or can't be the capture time.
    package static let stampedOnArrival = SampleFlags(rawValue: 1)
    /// The hardware's stamp isn't later than the one before.
    package static let stampRepeats = SampleFlags(rawValue: 2)
    /// The hardware's stamp isn't on the clock that it is said to be on.
    package static let stampImplausible = SampleFlags(rawValue: 4)
    /// `capture` was moved behind the sample before; the uncertainty covers it.
    package static let stampMoved = SampleFlags(rawValue: 8)
    /// Its data are torn or wrong by the driver's word or by their own form.
    package static let damaged = SampleFlags(rawValue: 16)
    /// Its data are those of the sample before, bit by bit.
    package static let repeated = SampleFlags(rawValue: 32)

    private static let words: [(SampleFlags, String)] = [
        (.stampedOnArrival, "ts_arrival"), (.stampRepeats, "ts_repeat"), (.stampImplausible, "ts_implausible"),
        (.stampMoved, "ts_moved"), (.damaged, "damaged"), (.repeated, "repeated"),
    ]

    /// For the files, in a fixed order.
    package var names: [String] { Self.words.filter { contains($0.0) }.map(\.1) }
}
