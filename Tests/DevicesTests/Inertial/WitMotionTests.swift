internal import Devices
internal import TestSupport
internal import Testing

@Suite("WitMotion frames")
struct WitMotionTests {
    /// 55 61, then nine integers: 0x4000 is half of full scale: 8 g, 1000 °/s, 90°.
    static let motion: [UInt8] = [
        0x55, 0x61, 0x00, 0x40, 0x00, 0x00, 0x00, 0xC0, 0x00, 0x40, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x40, 0x00, 0x00,
        0x00,
        0x80,
    ]

    @Test("a motion frame in SI")
    func values() throws {
        var decoder = WitMotionDecoder()
        let frames = decoder.take(Self.motion)
        let values = try #require(frames.first?.values)
        let expected = [
            8 * 9.80665, 0, -8 * 9.80665, 1000 * Double.pi / 180, 2000 / 32_768 * Double.pi / 180,
            -2000 / 32_768 * Double.pi / 180, Double.pi / 2, 0, -Double.pi,
        ]
        for (value, expected) in zip(values, expected) { #expect(abs(value - expected) < 1e-12) }
        #expect(frames.first?.bytes == Self.motion)
    }

    @Test("several frames in one notification, pieces over two, garbage between")
    func stream() {
        // 16-bit little-endian register 0x3A, eight values.
        let register: [UInt8] = [0x55, 0x71, 0x3A, 0x00] + [UInt8](repeating: 1, count: 16)
        // 12:34:56.789, with the sum of what stands before it.
        var time: [UInt8] = [0x55, 0x50, 26, 12, 1, 12, 34, 56, 0x15, 0x03]
        time.append(time.reduce(0, &+))
        let all = Self.motion + register + [0x55, 0x99, 0x55] + time + Self.motion
        for cut in 0...all.count {
            var decoder = WitMotionDecoder()
            let frames = decoder.take(Array(all[..<cut])) + decoder.take(Array(all[cut...]))
            #expect(frames.count == 4)
            #expect(frames[1] == .register(0x3A, [Int16](repeating: 0x0101, count: 8)))
            #expect(frames[2] == .time(milliseconds: 45_296_789))
            #expect(frames[2].bytes.suffix(5) == [34, 56, 0x15, 0x03, frames[2].bytes.last ?? 0])
            #expect(decoder.skipped == 3)
        }
    }

    @Test("a time whose checksum is wrong is no frame")
    func checksum() {
        var decoder = WitMotionDecoder()
        #expect(decoder.take([0x55, 0x50, 26, 12, 1, 12, 34, 56, 0x15, 0x03, 0]).isEmpty)
    }

    @Test("the commands are the maker's bytes, and read back")
    func commands() {
        // FF AA 69 88 B5 unlocks; FF AA 03 0B 00 sets 200 Hz; FF AA 27 3A 00 reads the magnetic field.
        #expect(WitMotionCommand.unlock.bytes == [0xFF, 0xAA, 0x69, 0x88, 0xB5])
        #expect(WitMotionCommand.setRate(WitMotionRate.hz200.rawValue).bytes == [0xFF, 0xAA, 0x03, 0x0B, 0x00])
        #expect(WitMotionCommand.setRate(WitMotionRate.hz100.rawValue).bytes == [0xFF, 0xAA, 0x03, 0x09, 0x00])
        #expect(WitMotionCommand.read(register: 0x3A).bytes == [0xFF, 0xAA, 0x27, 0x3A, 0x00])
        for command in [WitMotionCommand.unlock, .setRate(9), .read(register: 0x3A)] {
            #expect(WitMotionCommand(command.bytes) == command)
        }
        #expect(WitMotionCommand([0xFF, 0xAA, 0x69, 0x88]) == nil)
        #expect(WitMotionRate(hertz: 0.2)?.rawValue == 1)
        #expect(WitMotionRate(hertz: 33) == nil)
    }

    @Test("no bytes crash the decoder, and what it keeps is bounded", arguments: 0..<4 as Range<UInt64>)
    func wild(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var decoder = WitMotionDecoder()
        for _ in 0..<5000 {
            let bytes = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                [0x55, 0x61, 0x71, 0x50, UInt8.random(in: 0...255, using: &generator)]
                    .randomElement(using: &generator) ?? 0
            }
            for frame in decoder.take(bytes) { #expect(frame.bytes.count >= 11) }
        }
    }
}
