package import Timing

/// An emulated glove over the air: the real glove's service with its real bytes, and its faults.
///
/// Samples are taken whether somebody listens or not, as a glove does. It keeps the truth: when each sample was taken.
///
/// Concurrency: used by one thread; see `EmulatedPeripheral`.
package final class GlovePeripheral: EmulatedPeripheral {
    /// What goes wrong at the moment.
    package struct Weather: Sendable, Hashable {
        /// Seconds.
        package var burst = 0.0
        package var lossPercent = 0.0
        package var duplicatePercent = 0.0
        package var isStalled = false
        package var isDown = false

        package init() {}
    }

    package let script: GloveScript
    /// Asked at each step, with the age since the glove was switched on; nil leaves it to the script.
    package var weather: ((Interval) -> Weather)?
    /// Called with each sample that goes out for the first time: its number, its counter and when it was taken.
    package var onSample: ((_ index: Int64, _ counter: UInt32, _ taken: Timestamp<HostTime>) -> Void)?

    private let glove: EmulatedGlove
    private var server: ATTServer
    private var noise: SeededNoise
    private var link: (any PeripheralLink)?
    private var zero: Timestamp<HostTime>
    private var epochStart: Timestamp<HostTime>
    private var next: Int64 = 0
    /// Packets on their way, in order.
    private var queue: [(release: Timestamp<HostTime>, bytes: [UInt8])] = []
    private var lastRelease = Timestamp<HostTime>(nanoseconds: 0)
    /// When the air is blocked next, or since when.
    private var blocked = Timestamp<HostTime>(nanoseconds: 0)
    private var moments: [GloveScript.Moment]
    private var downUntil = Timestamp<HostTime>(nanoseconds: 0)
    private var stalledUntil = Timestamp<HostTime>(nanoseconds: 0)
    private var current = Weather()
    private static let longestQueue = 4096

    package init(_ script: GloveScript, at now: Timestamp<HostTime>) {
        self.script = script
        glove = EmulatedGlove(script)
        (zero, epochStart) = (now, now)
        noise = SeededNoise(seed: script.seed)
        moments = script.moments.sorted { $0.at < $1.at }
        typealias UUIDs = BluetoothGlove.UUIDs
        server = ATTServer([
            .init(
                BluetoothUUID(0x1800), [.init(GATTNumbers.deviceName, .read, value: Array(script.advertisedName.utf8))]),
            .init(BluetoothUUID(0x1801), []),
            .init(
                UUIDs.service,
                [
                    .init(UUIDs.data, .notify),
                    .init(UUIDs.configuration, .read, value: script.configurationText),
                    .init(UUIDs.command, [.write, .writeWithoutResponse]),
                    .init(UUIDs.log, .notify),
                    .init(UUIDs.battery, [.read, .notify], value: [UInt8(clamping: script.battery)]),
                ]),
        ])
    }

    package var name: String { script.advertisedName }
    package var advertising: [UInt8] { [] }

    package func isAdvertising(at now: Timestamp<HostTime>) -> Bool {
        link == nil && now >= downUntil && !current.isDown
    }

    package func connected(_ link: any PeripheralLink, at now: Timestamp<HostTime>) { self.link = link }

    package func received(_ packet: [UInt8], at now: Timestamp<HostTime>) {
        for answer in server.receive(packet).answers { link?.send(answer) }
    }

    package func disconnected(at now: Timestamp<HostTime>) {
        link = nil
        queue = []
        server.disconnected()
    }

    /// A fault at once.
    package func suffer(_ fault: GloveScript.Moment.Fault, at now: Timestamp<HostTime>) {
        switch fault {
        case .disconnect(let down):
            downUntil = now + .seconds(down)
            link?.disconnect()
        case .stall(let seconds): stalledUntil = now + .seconds(seconds)
        case .restart: (epochStart, next) = (now, 0)
        }
    }

    // MARK: Time

    package func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        current = weather?(now - zero) ?? scripted
        if current.isDown { link?.disconnect() }
        while let moment = moments.first, now >= zero + .seconds(moment.at) {
            moments.removeFirst()
            suffer(moment.fault, at: now)
        }
        let count = max(1, script.samplesPerPacket)
        while ready(count) <= now {
            send(from: next, count: count, ready: ready(count))
            next += Int64(count)
        }
        while let first = queue.first, first.release <= now {
            queue.removeFirst()
            link?.send(first.bytes)
        }
        var due = ready(count)
        if let first = queue.first { due = min(due, first.release) }
        if let moment = moments.first { due = min(due, zero + .seconds(moment.at)) }
        return due
    }

    private var scripted: Weather {
        var weather = Weather()
        weather.burst = script.burst
        (weather.lossPercent, weather.duplicatePercent) = (script.lossPercent, script.duplicatePercent)
        return weather
    }

    private func taken(_ index: Int64) -> Timestamp<HostTime> { epochStart + .seconds(glove.time(of: index)) }

    /// A packet is whole with its last sample.
    private func ready(_ count: Int) -> Timestamp<HostTime> { taken(next + Int64(count) - 1) }

    /// The air is clear for a while, and then blocked for as long as a burst: all that was held back comes together.
    private func release(_ ready: Timestamp<HostTime>) -> Timestamp<HostTime> {
        guard current.burst > 0 else { return ready }
        let length = Interval.seconds(current.burst)
        while ready >= blocked + length {
            // As often blocked as clear, on the average.
            blocked = max(blocked + length, ready - length) + .seconds(2 * current.burst * noise.uniform())
        }
        return ready >= blocked ? blocked + length : ready
    }

    private func send(from first: Int64, count: Int, ready: Timestamp<HostTime>) {
        let bytes = glove.packet(from: first, count: count)
        guard link != nil, ready >= stalledUntil, !current.isStalled,
            let packet = server.notification(of: BluetoothGlove.UUIDs.data, bytes)
        else { return }
        if current.lossPercent > 0, noise.uniform() * 100 < current.lossPercent { return }
        for index in first..<first + Int64(count) { onSample?(index, glove.counter(of: index), taken(index)) }
        let release = max(release(ready), lastRelease)
        lastRelease = release
        guard queue.count < Self.longestQueue else { return }
        queue.append((release, packet))
        if current.duplicatePercent > 0, noise.uniform() * 100 < current.duplicatePercent {
            queue.append((release, packet))
        }
    }
}
