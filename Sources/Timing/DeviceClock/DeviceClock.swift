/// From a device's counter and arrival stamps to host time: unwraps, fits, and says how far it may be off.
///
///     var clock = DeviceClock(.microseconds32, path: .bluetooth())
///     let stamps = clock.stamps(for: packet.counters, arrival: now)   // one packet, oldest sample first
///
/// **Capture** is the fitted line's host time, less the least delay of the path, plus half a tick (counters round down).
/// It is never later than the arrival and never earlier than the capture before it: where a better fit moves the line
/// back, the stamps wait for it, and their uncertainty holds the difference.
///
/// **Before there is enough data** the line has the device's nominal rate and goes through the quickest arrival so far;
/// the uncertainty is then that of the worst burst, and falls as arrivals come in. A second of pre-roll is enough to be
/// within some ms.
///
/// The device's own stamps are given unwrapped and otherwise unchanged. Not thread safe: one owner.
package struct DeviceClock: Sendable {
    /// What is known of the way from the sensor to this program.
    package struct Path: Sendable, Hashable {
        /// The least delay that every sample has; what isn't known of it is uncertainty.
        package var leastDelay: ClosedRange<Interval>
        /// The spread of delays to expect before it has been seen.
        package var burst: Interval
        /// The time between two instants at which the link can deliver; zero when it delivers at any time.
        package var grid: Interval

        package init(leastDelay: ClosedRange<Interval>, burst: Interval, grid: Interval = .zero) {
            self.leastDelay = leastDelay
            self.burst = burst
            self.grid = grid
        }

        /// A notification goes on air at the next connection event; a short one takes 0.3 ms and more, a long
        /// one on the slow PHY 2 ms, and the controller's way to the host up to 1 ms.
        ///
        /// The interval is the negotiated one, as it was read back.
        package static func bluetooth(connectionInterval: Interval) -> Path {
            Path(
                leastDelay: .zero ... .milliseconds(1), burst: max(.milliseconds(50), connectionInterval),
                grid: connectionInterval)
        }

        /// A USB transfer of a full-speed device: 1 ms frames.
        package static let usb = Path(
            leastDelay: .zero ... .microseconds(500), burst: .milliseconds(20), grid: .milliseconds(1))
    }

    package struct Stamp: Sendable, Hashable {
        /// The device's counter, unwrapped within its epoch.
        package var device: Timestamp<DeviceTime>
        package var capture: Timestamp<HostTime>
        package var uncertainty: Interval
        package var epoch: Int
        package var outcome: CounterUnwrapper.Outcome

        package init(
            device: Timestamp<DeviceTime>, capture: Timestamp<HostTime>, uncertainty: Interval, epoch: Int = 0,
            outcome: CounterUnwrapper.Outcome = .continuous
        ) {
            self.device = device
            self.capture = capture
            self.uncertainty = uncertainty
            self.epoch = epoch
            self.outcome = outcome
        }
    }

    package let path: Path
    private let limits: EnvelopeFit.Limits
    private var unwrapper: CounterUnwrapper
    private var fit: EnvelopeFit
    private var last: Timestamp<HostTime>?

    package init(_ shape: CounterShape, path: Path) {
        self.path = path
        var limits = EnvelopeFit.Limits()
        limits.burst = path.burst
        limits.grid = path.grid
        limits.transfer = path.leastDelay.upperBound
        self.limits = limits
        unwrapper = CounterUnwrapper(shape)
        fit = EnvelopeFit(limits: limits)
    }

    /// How often the device's clock began anew.
    package var epoch: Int { unwrapper.epoch }
    /// Counters that fitted nowhere.
    package var damaged: Int64 { unwrapper.damaged }
    /// How much faster the device's clock runs than the host's; nil as long as it isn't known to 100 ppm.
    package var skewPPM: Double? { fit.skewPPM }
    package var skewUncertaintyPPM: Double { fit.skewUncertaintyPPM }

    /// Tells that the link was lost: the device may have been switched off and on before the next sample.
    package mutating func linkLost() { unwrapper.linkLost() }

    /// Stamps one sample that arrived by itself.
    package mutating func stamp(_ counter: UInt64, arrival: Timestamp<HostTime>) -> Stamp {
        let reading = unwrapper.unwrap(counter, arrival: arrival)
        learn(reading, arrival)
        return stamp(reading, arrival)
    }

    /// Stamps the samples of one packet, oldest first: only its newest says anything of the delay.
    package mutating func stamps(for counters: [UInt64], arrival: Timestamp<HostTime>) -> [Stamp] {
        let readings = counters.map { unwrapper.unwrap($0, arrival: arrival) }
        // A new epoch shows in the second sample of a packet already.
        if let newest = readings.last {
            if readings.contains(where: { $0.outcome == .newEpoch }) {
                learn(marked(newest), arrival)
            } else {
                learn(newest, arrival)
            }
        }
        return readings.map { stamp($0, arrival) }
    }

    // MARK: Private

    private func marked(_ reading: CounterUnwrapper.Reading) -> CounterUnwrapper.Reading {
        var reading = reading
        if reading.outcome == .continuous { reading.outcome = .newEpoch }
        return reading
    }

    private mutating func learn(_ reading: CounterUnwrapper.Reading, _ arrival: Timestamp<HostTime>) {
        switch reading.outcome {
        case .continuous: break
        case .suspect: return
        case .newEpoch: fit = EnvelopeFit(limits: limits)
        }
        fit.add(reading.device, arrival: arrival)
    }

    private mutating func stamp(_ reading: CounterUnwrapper.Reading, _ arrival: Timestamp<HostTime>) -> Stamp {
        let tick = unwrapper.shape.tick
        var (capture, uncertainty) = (max(arrival - path.burst, last ?? arrival), path.burst)
        // A suspect's counter says nothing of its time yet.
        if reading.outcome != .suspect, reading.epoch == unwrapper.epoch, let placed = fit.place(reading.device) {
            (capture, uncertainty) = (placed.host + tick / 2, placed.uncertainty)
        }
        let (least, most) = (path.leastDelay.lowerBound, path.leastDelay.upperBound)
        capture = min(capture - (least + most) / 2, arrival)
        uncertainty = uncertainty + (most - least) / 2 + tick / 2
        if let last, capture < last {
            uncertainty = uncertainty + (last - capture)
            capture = last
        }
        last = capture
        return Stamp(
            device: reading.device, capture: capture, uncertainty: uncertainty, epoch: reading.epoch,
            outcome: reading.outcome)
    }
}
