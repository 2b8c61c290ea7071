internal import Acoustics
internal import Devices
internal import Foundation
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@Suite struct AirTests {
    static let host = HostID(unchecked: "здесь 1")
    static let now = Timestamp<RoomTime>(nanoseconds: 5_000_000_000_000)

    static func sound(_ samples: [Float], start: Timestamp<RoomTime> = now, rate: Int = 48_000) -> AirSound {
        AirSound(start: start, rate: rate, position: [1.5, -2, 0.25], host: host, samples: samples)
    }

    /// What a listener hears of one sound, from an instant on.
    static func heard(
        _ sound: AirSound, at position: [Double], from start: Timestamp<RoomTime>, count: Int, rate: Double
    ) throws -> [Float] {
        let temporary = try TemporaryFolder()
        let folder = AirFolder(temporary.path)
        try folder.publish(folder.write(sound))
        var listener = AirListener(folder: folder, position: position, rate: Int(rate))
        listener.refresh(now: sound.start)
        var block = [Float](repeating: 0, count: count)
        listener.mix(into: &block, from: start, rate: rate)
        return block
    }

    @Test(
        "the kernel's word on the time namespace is read",
        arguments: [
            ("monotonic           0         0\nboottime            0         0\n", 0),
            ("monotonic        3600         7\nboottime            0         0\n", 3_600_000_000_007),
            ("boottime 1 0\nmonotonic -1000 500000000\n", -999_500_000_000),
            ("", nil), ("monotonic x 0\n", nil),
        ] as [(String, Int64?)])
    func offsets(_ text: String, _ expected: Int64?) {
        #expect(RoomClock.offset(inTimensOffsets: text)?.nanoseconds == expected)
    }

    @Test("a sound comes back from its file as it was")
    func roundTrip() throws {
        let sound = Self.sound((0..<1000).map { Float($0) / 1000 - 0.5 })
        #expect(try AirSound(parsing: sound.encoded()) == sound)
        #expect(sound.end - sound.start == .nanoseconds(20_833_333))
    }

    @Test("no cut and no flipped byte passes as a sound")
    func corruption() {
        let bytes = Self.sound([0.25, -0.25, 1]).encoded()
        for length in 0..<bytes.count {
            #expect(throws: AirSound.Malformed.self) { try AirSound(parsing: Array(bytes[..<length])) }
        }
        for index in bytes.indices {
            var wrong = bytes
            wrong[index] ^= 0x10
            #expect(throws: AirSound.Malformed.self) { try AirSound(parsing: wrong) }
        }
    }

    @Test("figures out of range are refused though the checksum is right")
    func wildFigures() {
        var sounds = [Self.sound([0.5, .nan]), Self.sound([0.5], rate: 7), Self.sound([.infinity])]
        sounds.append(Self.sound([0.5], start: Timestamp(nanoseconds: -5)))
        var far = Self.sound([0.5])
        far.position = [1e9, 0, 0]
        var nowhere = Self.sound([0.5])
        nowhere.position = [0, .nan, 0]
        for sound in sounds + [far, nowhere] {
            #expect(throws: AirSound.Malformed.self) { try AirSound(parsing: sound.encoded()) }
        }
    }

    struct Path: Sendable {
        let soundRate: Int
        let listenerRate: Double
        let hertz: Double
        let distance: Double
    }

    @Test(
        "a tone arrives delayed by distance/343 and weaker by 1/distance, to a thousandth, at any pair of rates",
        arguments: [
            Path(soundRate: 48_000, listenerRate: 48_000, hertz: 18_000, distance: 2),
            Path(soundRate: 48_000, listenerRate: 48_000, hertz: 19_000, distance: 3.3333),
            Path(soundRate: 44_100, listenerRate: 48_000, hertz: 19_000, distance: 7.77),
            Path(soundRate: 48_000, listenerRate: 44_100, hertz: 19_000, distance: 0.5),
            Path(soundRate: 48_000, listenerRate: 48_000 * 1.0003, hertz: 19_000, distance: 1),
            Path(soundRate: 48_000, listenerRate: 16_000, hertz: 5_000, distance: 4),
        ])
    func travel(_ path: Path) throws {
        let soundRate = Double(path.soundRate)
        let tone = (0..<9600).map { Float(0.5 * sin(2 * Double.pi * path.hertz * Double($0) / soundRate)) }
        let sound = Self.sound(tone, rate: path.soundRate)
        let position = [1.5 + path.distance, -2, 0.25]
        let start = Self.now + .milliseconds(60)
        let block = try Self.heard(sound, at: position, from: start, count: 960, rate: path.listenerRate)
        let gain = 0.5 / max(path.distance, 1)
        var worst = 0.0
        for index in 0..<960 {
            // The straight formula; the delay is rounded to the nanosecond, which is 1.2e-4 rad at 19 kHz.
            let t = 0.06 + Double(index) / path.listenerRate - path.distance / 343
            worst = max(worst, abs(Double(block[index]) - gain * sin(2 * Double.pi * path.hertz * t)) / gain)
        }
        // Half a step of the kernel's table is 1/4096 sample: 6e-4 rad at 19 kHz and 48 kHz.
        #expect(worst < 2e-3)
    }

    @Test("what the listener's rate can't hold doesn't come back as another tone")
    func noAliases() throws {
        let tone = (0..<9600).map { Float(0.5 * sin(2 * Double.pi * 18_000 * Double($0) / 48_000)) }
        let block = try Self.heard(
            Self.sound(tone), at: [1.5, -2, 0.25], from: Self.now + .milliseconds(60), count: 320, rate: 16_000)
        // 60 dB below.
        #expect(block.allSatisfy { abs($0) < 0.0005 })
    }

    @Test("before and after a sound there is silence")
    func edges() throws {
        let sound = Self.sound([Float](repeating: 0.5, count: 480))
        let block = try Self.heard(
            sound, at: [1.5, -2, 0.25], from: Self.now - .milliseconds(10), count: 1440, rate: 48_000)
        #expect(block[..<450].allSatisfy { $0 == 0 })
        #expect(abs(block[720] - 0.5) < 0.001)
        #expect(block[990...].allSatisfy { $0 == 0 })
    }

    @Test("two sounds at once add up, and a broken file among them is skipped")
    func mixture() throws {
        let temporary = try TemporaryFolder()
        let folder = AirFolder(temporary.path)
        for level in [0.25, 0.125] as [Float] {
            try folder.publish(folder.write(Self.sound([Float](repeating: level, count: 4800))))
        }
        let names = try folder.names()
        try AtomicFile.write([1, 2, 3], to: "\(folder.path)/broken.air")
        // A right name with a wrong content; its last digit is random, so "0" may be one of the good sounds.
        let torn = ["0.air", "1.air", "2.air"].map { names[0].dropLast(5) + $0 }.first { !names.contains(String($0)) }
        try AtomicFile.write("DOWNAIR1 but no more", to: "\(folder.path)/\(try #require(torn))")
        var listener = AirListener(folder: folder, position: [1.5, -2, 0.25], rate: 48_000)
        for _ in 0..<3 { listener.refresh(now: Self.now) }
        var block = [Float](repeating: 0, count: 100)
        listener.mix(into: &block, from: Self.now + .milliseconds(50), rate: 48_000)
        #expect(block.allSatisfy { abs($0 - 0.375) < 0.001 })
    }

    @Test("old sounds and those of an earlier boot are swept, others stay")
    func sweeping() throws {
        let temporary = try TemporaryFolder()
        let folder = AirFolder(temporary.path)
        let samples = [Float](repeating: 0.5, count: 48)
        try folder.publish(folder.write(Self.sound(samples, start: Self.now - AirFolder.keep - .milliseconds(5))))
        try folder.publish(folder.write(Self.sound(samples, start: Self.now - .milliseconds(5))))
        let fresh = try folder.names().sorted()
        let foreign = try #require(fresh.last).replacing(/^[^-]*/, with: "00000000")
        try AtomicFile.write(Self.sound(samples).encoded(), to: "\(folder.path)/\(foreign)")
        #expect(try folder.names().count == 3)
        folder.sweep(now: Self.now)
        let left = try folder.names()
        #expect(left.count == 1)
        #expect(left.first?.contains("-\((Self.now - .milliseconds(5)).nanoseconds)-") == true)
    }
}
