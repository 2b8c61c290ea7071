package import Timing

/// An emulated WitMotion sensor over the air: the real one's service with its real frames, and faults.
///
/// Concurrency: used by one thread; see `EmulatedPeripheral`.
package final class WitMotionPeripheral: EmulatedPeripheral {
    package struct Script: Sendable {
        package var name = "WT901BLE67"
        /// How much faster than the host's the sensor's clock runs.
        package var skewPPM = 0.0
        package var seed: UInt64 = 1

        package init() {}
    }

    /// What goes wrong now.
    package struct Faults: Sendable {
        /// Packets are held back for up to so many seconds.
        package var burst = 0.0
        package var lossPercent = 0.0
        package var duplicatePercent = 0.0
        /// Nothing is sent, and what is taken is lost.
        package var isStalled = false

        package init() {}
    }

    package let script: Script
    package var faults = Faults()
    /// Called with each frame that is taken: its number, when, and whether it will be sent.
    package var onSample: ((_ index: Int64, _ taken: Timestamp<HostTime>, _ sent: Bool) -> Void)?
    /// The rate that was set last.
    package private(set) var rate = WitMotionRate.hz10
    private let motion: EmulatedMotion
    private let zero: Timestamp<HostTime>
    private var server: ATTServer
    private var noise: SeededNoise
    private var link: (any PeripheralLink)?
    private var isUnlocked = false
    private var next: Timestamp<HostTime>
    private var index: Int64 = 0
    private var held: [[UInt8]] = []
    private var release: Timestamp<HostTime>
    private var downUntil: Timestamp<HostTime>

    package init(_ script: Script, at now: Timestamp<HostTime>) {
        self.script = script
        motion = EmulatedMotion(seed: script.seed)
        noise = SeededNoise(seed: script.seed)
        (zero, next, release, downUntil) = (now, now, now, now)
        typealias UUIDs = WitMotionIMU.UUIDs
        server = ATTServer([
            .init(BluetoothUUID(0x1800), [.init(GATTNumbers.deviceName, .read, value: Array(script.name.utf8))]),
            .init(UUIDs.service, [.init(UUIDs.data, .notify), .init(UUIDs.command, [.write, .writeWithoutResponse])]),
        ])
    }

    package var name: String { script.name }
    package var advertising: [UInt8] { [] }

    package func isAdvertising(at now: Timestamp<HostTime>) -> Bool { link == nil && now >= downUntil }
    package func connected(_ link: any PeripheralLink, at now: Timestamp<HostTime>) { self.link = link }

    package func disconnected(at now: Timestamp<HostTime>) {
        link = nil
        held = []
        isUnlocked = false
        server.disconnected()
    }

    package func received(_ packet: [UInt8], at now: Timestamp<HostTime>) {
        let (answers, events) = server.receive(packet)
        for answer in answers { link?.send(answer) }
        for case .written(let uuid, let bytes) in events where uuid == WitMotionIMU.UUIDs.command { obey(bytes) }
    }

    /// The link is lost, and the sensor not to be reached for a while.
    package func disconnect(for seconds: Double, at now: Timestamp<HostTime>) {
        downUntil = now + .seconds(seconds)
        link?.disconnect()
    }

    package func step(at now: Timestamp<HostTime>) -> Timestamp<HostTime>? {
        while next <= now {
            take(next)
            next += .seconds(1 / (rate.hertz * (1 + script.skewPPM * 1e-6)))
        }
        guard now >= release, !held.isEmpty else { return held.isEmpty ? next : min(next, release) }
        for bytes in held { link?.send(bytes) }
        held = []
        release = now + .seconds(faults.burst * noise.uniform())
        return next
    }

    // MARK: Private

    private func take(_ taken: Timestamp<HostTime>) {
        defer { index += 1 }
        let isSent = !faults.isStalled && !(faults.lossPercent > 0 && noise.uniform() * 100 < faults.lossPercent)
        onSample?(index, taken, isSent)
        guard isSent else { return }
        let values = motion.values(at: Timestamp(nanoseconds: (taken - zero).nanoseconds))
        notify(
            .motion(accelerations: Array(values[0..<3]), rates: Array(values[3..<6]), angles: [0, 0, 0]))
    }

    private func notify(_ frame: WitMotionFrame) {
        guard link != nil, held.count < 1024, let packet = server.notification(of: WitMotionIMU.UUIDs.data, frame.bytes)
        else { return }
        held.append(packet)
        if faults.duplicatePercent > 0, noise.uniform() * 100 < faults.duplicatePercent { held.append(packet) }
    }

    private func obey(_ bytes: [UInt8]) {
        switch WitMotionCommand(bytes) {
        case .unlock: isUnlocked = true
        case .setRate(let code):
            if isUnlocked, let new = WitMotionRate(rawValue: code) { rate = new }
        case .read(let register):
            let values = [register == 3 ? Int16(rate.rawValue) : 0] + [Int16](repeating: 0, count: 7)
            notify(.register(UInt16(register), values))
        case nil: break
        }
    }
}
