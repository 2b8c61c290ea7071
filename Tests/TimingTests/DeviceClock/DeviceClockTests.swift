internal import TestSupport
internal import Testing
internal import Timing

@Suite("Device clock")
struct DeviceClockTests {
    struct Errors {
        /// |error| in ms, from `settled` seconds on.
        var settled: [Double] = []
        var outside = 0
        var all = 0
        var backward = 0
        var future = 0

        func percentile(_ part: Double) -> Double {
            let sorted = settled.sorted()
            return sorted.isEmpty ? .infinity : sorted[min(sorted.count - 1, Int(part * Double(sorted.count)))]
        }
    }

    private func judge(
        _ packets: [[SimulatedDevice.Arrival]], _ clock: inout DeviceClock, start: Timestamp<HostTime>,
        settled: Double = 2
    ) -> Errors {
        var errors = Errors()
        var last: Timestamp<HostTime>?
        for packet in packets {
            // Each sample is a notification of its own; a connection event carries several.
            for sample in packet {
                let stamp = clock.stamp(sample.counter, arrival: sample.arrival)
                let error = (stamp.capture - sample.taken).magnitude
                errors.all += 1
                if error > stamp.uncertainty { errors.outside += 1 }
                if let last, stamp.capture < last { errors.backward += 1 }
                if stamp.capture > sample.arrival { errors.future += 1 }
                last = stamp.capture
                if (sample.taken - start).seconds >= settled { errors.settled.append(error.milliseconds) }
            }
        }
        return errors
    }

    @Test(
        "within 2 ms at the 95th percentile while arrivals burst by 45 ms, whatever the skew up to 1000 ppm",
        arguments: 0..<24 as Range<UInt64>)
    func bursts(seed: UInt64) {
        var device = SimulatedDevice(seed: seed)
        device.skewPPM = Double.random(in: -1000...1000, using: &device.generator)
        // Connection events that aren't locked to the sampling.
        device.burst = Double.random(in: 41...49, using: &device.generator)
        device.rate = [100, 125, 200, 250].randomElement(using: &device.generator) ?? 100
        device.counterStart = UInt64.random(in: 0..<1 << 32, using: &device.generator)
        let path = DeviceClock.Path.bluetooth(connectionInterval: .seconds(device.burst / 1e3))
        var clock = DeviceClock(.microseconds32, path: path)
        let errors = judge(device.packets(seconds: 60), &clock, start: device.start)
        #expect(errors.percentile(0.95) <= 2)
        // The uncertainty is one of 95 %; the sum of its parts holds more.
        #expect(Double(errors.outside) <= 0.03 * Double(errors.all))
        #expect(errors.backward == 0)
        #expect(errors.future == 0)
        #expect(clock.epoch == 0)
        #expect(clock.damaged == 0)
        let skew = clock.skewPPM ?? .infinity
        #expect(abs(skew - device.skewPPM) <= max(clock.skewUncertaintyPPM, 20))
    }

    @Test("a counter of 16-bit milliseconds goes around 3 times in 200 seconds", arguments: [-1000.0, 0, 1000])
    func shortCounter(skewPPM: Double) {
        var device = SimulatedDevice(seed: 7)
        device.shape = .milliseconds16
        device.skewPPM = skewPPM
        device.counterStart = 65_000
        var clock = DeviceClock(.milliseconds16, path: .bluetooth(connectionInterval: .microseconds(43_300)))
        let errors = judge(device.packets(seconds: 200), &clock, start: device.start)
        #expect(errors.percentile(0.95) <= 2)
        #expect(Double(errors.outside) <= 0.03 * Double(errors.all))
        #expect(clock.epoch == 0)
    }

    @Test("connection events that are locked to the sampling: the uncertainty holds the wait that can't be seen")
    func locked() {
        for seed in 0..<20 as Range<UInt64> {
            var device = SimulatedDevice(seed: seed)
            (device.burst, device.rate) = (30, 100)
            var clock = DeviceClock(.microseconds32, path: .bluetooth(connectionInterval: .milliseconds(15)))
            let errors = judge(device.packets(seconds: 20), &clock, start: device.start)
            // Half of the interval, and the latency of the transfer.
            #expect(errors.percentile(0.95) <= 10)
            #expect(Double(errors.outside) <= 0.03 * Double(errors.all))
        }
    }

    @Test("a serial line: each sample by itself, 0.2 to 2 ms late", arguments: 0..<10 as Range<UInt64>)
    func serial(seed: UInt64) {
        var device = SimulatedDevice(seed: seed)
        device.burst = 0
        device.rate = 200
        device.skewPPM = 300
        let path = DeviceClock.Path(leastDelay: .microseconds(100) ... .microseconds(300), burst: .milliseconds(20))
        var clock = DeviceClock(.microseconds32, path: path)
        let errors = judge(device.packets(seconds: 30), &clock, start: device.start)
        #expect(errors.percentile(0.95) <= 0.3)
        #expect(Double(errors.outside) <= 0.03 * Double(errors.all))
    }

    @Test("the first stamp is the arrival, and its uncertainty the worst burst")
    func firstStamp() {
        var clock = DeviceClock(.microseconds32, path: .bluetooth(connectionInterval: .microseconds(43_300)))
        let arrival = Timestamp<HostTime>(nanoseconds: 1_000_000_000)
        let stamp = clock.stamp(1234, arrival: arrival)
        // Half of the least delay's range, 0.5 ms, before the arrival.
        #expect(stamp.capture == arrival - .microseconds(500) + .nanoseconds(500))
        #expect(stamp.uncertainty >= .milliseconds(90))
        #expect(stamp.device == Timestamp(nanoseconds: 1_234_000))
        #expect(clock.skewPPM == nil)
    }

    @Test("a stall of 3 s that is delivered at once doesn't move the line")
    func stall() {
        var device = SimulatedDevice(seed: 3)
        device.skewPPM = 200
        let packets = device.packets(seconds: 40)
        let (from, to) = (device.start + .milliseconds(20_000), device.start + .milliseconds(23_000))
        let held = packets.map { packet in
            packet.map { sample in
                SimulatedDevice.Arrival(
                    counter: sample.counter,
                    arrival: sample.arrival > from ? max(sample.arrival, to) : sample.arrival, taken: sample.taken)
            }
        }
        var clock = DeviceClock(.microseconds32, path: .bluetooth(connectionInterval: .microseconds(43_300)))
        let errors = judge(held, &clock, start: device.start)
        #expect(errors.percentile(0.999) <= 5)
        #expect(clock.epoch == 0)
    }

    @Test("a device that was switched off and on begins a new epoch, and is fitted anew")
    func reset() {
        var device = SimulatedDevice(seed: 4)
        device.counterStart = 900_000_000
        let before = device.packets(seconds: 20)
        var clock = DeviceClock(.microseconds32, path: .bluetooth(connectionInterval: .microseconds(43_300)))
        _ = judge(before, &clock, start: device.start)
        clock.linkLost()
        // Its counter begins at zero.
        device.counterStart = 0 &- UInt64(30 * 1_000_000)
        let after = device.packets(seconds: 20, from: 30)
        let errors = judge(after, &clock, start: device.start, settled: 32)
        #expect(clock.epoch == 1)
        #expect(errors.percentile(0.95) <= 2)
        #expect(errors.backward == 0)
    }

    @Test("a device that goes on counting over a lost link stays in its epoch")
    func reconnect() {
        var device = SimulatedDevice(seed: 5)
        device.skewPPM = -800
        var clock = DeviceClock(.microseconds32, path: .bluetooth(connectionInterval: .microseconds(43_300)))
        _ = judge(device.packets(seconds: 20), &clock, start: device.start)
        clock.linkLost()
        let errors = judge(device.packets(seconds: 20, from: 90), &clock, start: device.start, settled: 90)
        #expect(clock.epoch == 0)
        #expect(errors.percentile(0.95) <= 2)
    }

    @Test("one damaged counter is left out of the line and counted")
    func damagedCounter() {
        var device = SimulatedDevice(seed: 6)
        device.counterStart = 3_000_000_000
        let packets = device.packets(seconds: 10)
        var clock = DeviceClock(.microseconds32, path: .bluetooth(connectionInterval: .microseconds(43_300)))
        for (index, packet) in packets.enumerated() {
            for sample in packet {
                let counter = index == 100 && sample.counter == packet[0].counter ? 17 : sample.counter
                let stamp = clock.stamp(counter, arrival: sample.arrival)
                if counter == 17 {
                    #expect(stamp.outcome == .suspect)
                    #expect((stamp.capture - sample.taken).magnitude <= stamp.uncertainty)
                }
            }
        }
        #expect(clock.damaged == 1)
        #expect(clock.epoch == 0)
    }
}
