import Devices
import TestSupport
import Testing

/// Layouts and figures of the glove's data sheet (syncfield.md 5.3); the bytes are put together here by hand, not by the
/// emulator.
@Suite struct GlovePacketTests {
    static func configuration(_ schema: Int, side: String = "right") throws -> GloveConfiguration {
        let text =
            schema == 0
            ? #"{"side":"\#(side)","rate_hz":100,"channels":[{"id":0,"loc":"thumb","type":"fsr","bits":12}]}"#
            : #"{"schema_ver":\#(schema),"side":"\#(side)","rate_hz":100}"#
        return try GloveConfiguration(Array(text.utf8))
    }

    /// 550 and 551 counts, packed: 0x226 and 0x227.
    static let idle = [[UInt8]](repeating: [0x22, 0x62, 0x27], count: 40).flatMap { $0 }

    static func u16(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8 & 0xFF)] }
    static func u32(_ value: Int) -> [UInt8] { u16(value & 0xFFFF) + u16(value >> 16) }

    /// Two values in three bytes: 0x123 and 0x456 are 12 34 56.
    @Test func twelveBits() {
        #expect(GlovePacket.unpack([0x12, 0x34, 0x56], count: 2) == [0x123, 0x456])
        #expect(GlovePacket.unpack([0xFF, 0xF0, 0x00, 0xAB, 0xC0], count: 3) == [0xFFF, 0, 0xABC])
        #expect(GlovePacket.pack([0x123, 0x456]) == [0x12, 0x34, 0x56])
    }

    /// Ten samples of five sensors are 106 bytes.
    @Test func legacy() throws {
        let samples = (0..<10).flatMap { sample in (0..<5).flatMap { Self.u16(100 * $0 + sample) } }
        let bytes = Self.u16(10) + Self.u32(5_000_000) + samples
        #expect(bytes.count == 106)
        let configuration = try Self.configuration(0)
        let readings = try GlovePacket.readings(bytes, configuration)
        #expect(readings.count == 10)
        #expect(readings[3].counter == 5_030_000 && readings[3].values == [3, 103, 203, 303, 403])
        #expect(configuration.tactileChannels == ["thumb", "index", "middle", "ring", "pinky"])
        #expect(throws: GlovePacket.Malformed.sizeMismatch(105, needed: 106)) {
            try GlovePacket.readings(Array(bytes.dropLast()), configuration)
        }
        #expect(try GlovePacket.readings(Self.u16(0) + Self.u32(1), configuration).isEmpty)
    }

    @Test func schema4() throws {
        let configuration = try Self.configuration(4)
        let taxels: [UInt8] = (0..<80).flatMap { Self.u16(1000 + $0) }
        let numbers: [UInt8] = [100, -200, 1, 2, 3, -4, 5, -6].flatMap { (value: Int) in Self.u16(value) }
        let imu: [UInt8] = numbers + [1]
        let each: [UInt8] = [1, 0x01] + Self.u32(7000) + taxels + imu
        let readings = try GlovePacket.readings(each, configuration)
        #expect(readings.map(\.modality) == [.tactile, .imu])
        #expect(readings[0].values.first == 1000 && readings[0].values.last == 1079 && readings[0].sequence == nil)
        #expect(readings[1].values == [1, 2, 3, -4, 5, -6])
        let once: [UInt8] = [2, 0x02] + Self.u32(7000) + taxels + taxels + imu
        let together = try GlovePacket.readings(once, configuration)
        #expect(together.map(\.modality) == [.tactile, .tactile, .imu])
        #expect(together.map(\.counter) == [7000, 17_000, 17_000])
    }

    /// Three samples are 412 bytes.
    @Test func schema5() throws {
        let packed = Self.idle
        let imu: [UInt8] = [-1674, -904, 3645, -2, -2, 7].flatMap { (value: Int) in Self.u16(value) }
        let slots: [UInt8] = (0..<3).flatMap { (index: Int) -> [UInt8] in Self.u16(index * 10_000) + packed + imu }
        let bytes: [UInt8] = [3, 0x04] + Self.u32(1903) + Self.u32(0xFFFF_FFFF - 9_999) + slots
        #expect(bytes.count == 412)
        let configuration = try Self.configuration(5)
        let readings = try GlovePacket.readings(bytes, configuration)
        #expect(readings.map(\.modality) == [.tactile, .imu, .tactile, .imu, .tactile, .imu])
        // 550 counts, an idle taxel, is 0x226; 0x227 is the next.
        #expect(readings[0].values == (0..<40).flatMap { _ in [0x226, 0x227] as [Int32] })
        #expect(readings.map(\.sequence) == [1903, 1903, 1904, 1904, 1905, 1905])
        #expect(readings[1].values == [-1674, -904, 3645, -2, -2, 7])
        // The counter of 32 bits begins anew within the packet.
        #expect(readings[0].counter == 4_294_957_296 && readings[2].counter == 0 && readings[4].counter == 10_000)
        // A cut-off inertial block at the end goes; a cut-off taxel block is an error.
        let cut = try GlovePacket.readings(Array(bytes.dropLast()), configuration)
        #expect(cut.map(\.modality) == [.tactile, .imu, .tactile, .imu, .tactile])
        #expect(throws: GlovePacket.Malformed.self) {
            try GlovePacket.readings(Array(bytes.dropLast(13)), configuration)
        }
        var other = bytes
        other[1] = 0
        #expect(throws: GlovePacket.Malformed.unsupportedFraming(flags: 0)) {
            try GlovePacket.readings(other, configuration)
        }
        #expect(try GlovePacket.readings([0, 4] + Self.u32(0) + Self.u32(0), configuration).isEmpty)
    }

    /// Three samples are 436 bytes; the inertial sample was taken 1.5 ms before the taxels.
    @Test func schema6() throws {
        let packed = Self.idle
        let rest: [UInt8] = [777, -531, -3982, -5, -8, 1, 3142, 678, -1107].flatMap { (value: Int) in Self.u16(value) }
        func packet(flags: UInt8, shift: Int) -> [UInt8] {
            [3, flags] + Self.u32(100) + Self.u32(50_000)
                + (0..<3).flatMap { Self.u16($0 * 4000) + packed + rest + Self.u16(shift) }
        }
        let configuration = try Self.configuration(6)
        let bytes = packet(flags: 0x18, shift: -1500)
        #expect(bytes.count == 436)
        let readings = try GlovePacket.readings(bytes, configuration)
        #expect(readings.count == 9)
        #expect(readings.filter { $0.modality == .tactile }.map(\.counter) == [50_000, 54_000, 58_000])
        let imu = readings.filter { $0.modality == .imu }
        #expect(imu.map(\.counter) == [48_500, 52_500, 56_500])
        #expect(imu[0].values == [777, -531, -3982, -5, -8, 1])
        #expect(readings.filter { $0.modality == .mag }[2].values == [3142, 678, -1107])
        // Without the flag the field's place is filled with nothing that counts.
        #expect(
            try GlovePacket.readings(packet(flags: 0x10, shift: 0), configuration).map(\.modality).contains(.mag)
                == false)
        // A time that can't be told: the inertial sample is an old one.
        let stale = try GlovePacket.readings(packet(flags: 0x18, shift: -32_768), configuration)
        #expect(stale.map(\.modality) == [.tactile, .tactile, .tactile])
    }

    /// The glove maker's golden vectors: 25, 19 and 133 bytes (syncfield.md 5.3).
    @Test func goldenTagFrames() {
        let imu = hex("a5 5a 02 0c 00 de 0e 00 00 86 08 0f 4a 76 f9 78 fc 3d 0e fe ff fe ff 07 00")
        let mag = hex("a5 5a 03 06 00 b7 03 00 00 ba 17 0f 4a bf fa eb ec ec 26")
        let tactile =
            hex("a5 5a 01 78 00 6f 07 00 00 f9 05 0f 4a") + Self.idle
        #expect(imu.count == 25 && mag.count == 19 && tactile.count == 133)
        var reader = TagFrameReader()
        let items = reader.append(imu + mag + tactile)
        #expect(
            items.prefix(2) == [
                .reading(
                    GloveReading(
                        .imu, sequence: 3806, counter: 1_242_499_206, values: [-1674, -904, 3645, -2, -2, 7])),
                .reading(GloveReading(.mag, sequence: 951, counter: 1_242_503_098, values: [-1345, -4885, 9964])),
            ])
        guard case .reading(let last) = items.last else {
            Issue.record("no tactile frame")
            return
        }
        #expect(last.sequence == 1903 && last.counter == 1_242_498_553 && last.values.count == 80)
        #expect(last.values.prefix(2) == [550, 551])
    }

    /// Whatever the system has ready: each way to cut the bytes gives the same frames.
    @Test func framesSurviveAnyCut() {
        let imu = hex("a5 5a 02 0c 00 de 0e 00 00 86 08 0f 4a 76 f9 78 fc 3d 0e fe ff fe ff 07 00")
        let mag = hex("a5 5a 03 06 00 b7 03 00 00 ba 17 0f 4a bf fa eb ec ec 26")
        let stream =
            Array("#HB t_us=1 imu_ok=1\r\n".utf8) + imu + hex("00 ff a5 61") + mag + Array("#STREAM TAG on\n".utf8)
            + imu
        var whole = TagFrameReader()
        let expected = whole.append(stream)
        #expect(expected.count == 5)
        for size in 1...stream.count {
            var reader = TagFrameReader()
            var items: [TagFrameReader.Item] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                items += reader.append(stream[start..<min(start + size, stream.count)])
            }
            #expect(items == expected, "pieces of \(size)")
        }
    }

    /// A frame without a checksum is believed by its type and length; a bad one costs itself and no more.
    @Test func fault38_corruptFramesAreSkippedAndCounted() {
        let good = hex("a5 5a 03 06 00 b7 03 00 00 ba 17 0f 4a bf fa eb ec ec 26")
        var reader = TagFrameReader()
        let wrongLength = hex("a5 5a 01 e7 03 01 00 00 00 01 00 00 00")
        let wrongType = hex("a5 5a 63 0c 00 02 00 00 00 02 00 00 00")
        #expect(reader.append(wrongLength + good + wrongType + good).count == 2)
        #expect(reader.malformed == 2)
        // One that was cut off by a lost piece, with the start of the next inside it.
        var second = TagFrameReader()
        let items = second.append(Array(good[..<9]) + good + good + good)
        #expect(items.count >= 2)
    }

    @Test func randomBytesAreReadOrRefused() throws {
        var random = SeededGenerator(seed: 5)
        let configurations = try [0, 4, 5, 6].map { try Self.configuration($0) }
        for _ in 0..<5_000 {
            var bytes = (0..<Int.random(in: 0..<500, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if bytes.count > 1 { bytes[0] = UInt8.random(in: 0...4, using: &random) }
            for configuration in configurations {
                let readings = (try? GlovePacket.readings(bytes, configuration)) ?? []
                #expect(readings.count <= 3 * 255)
            }
            var reader = TagFrameReader()
            _ = reader.append(bytes)
        }
    }
}

@Suite struct GloveConfigurationTests {
    @Test func wholeText() throws {
        let text = #"""
            {"device":"OGLO","schema_ver":5,"serial":"OG-17","side":"left","hw_rev":"RDR-02","fw_rev":"0.7.1","rate_hz":100,
            "samples_per_packet":3,"adc_bits":12,"packet_format":"packed12_v5","values_per_sample":80,
            "sample_order":["finger","row","col"],"sample_shape":[5,4,4],
            "channels":["pinky","ring","middle","index","thumb"],"imu":true,"cal_valid":false}
            """#
        let configuration = try GloveConfiguration(Array(text.utf8) + [0, 0])
        #expect(configuration.side == .left && configuration.serial == "OG-17" && configuration.schema == 5)
        #expect(configuration.rate == 100 && !configuration.isTruncated && configuration.isCalibrated == false)
        let names = configuration.tactileChannels
        #expect(names.count == 80 && names[0] == "pinky_0_0" && names[5] == "pinky_1_1" && names[79] == "thumb_3_3")
    }

    /// Without channels the order is that of the side: a left glove is not labelled from the thumb on.
    @Test func fingersFollowTheSide() throws {
        let left = try GloveConfiguration(Array(#"{"schema_ver":5,"side":"left"}"#.utf8))
        let right = try GloveConfiguration(Array(#"{"schema_ver":5,"side":"RIGHT"}"#.utf8))
        #expect(left.fingers == ["pinky", "ring", "middle", "index", "thumb"])
        #expect(right.fingers == ["thumb", "index", "middle", "ring", "pinky"])
    }

    /// BlueZ hands out about 510 bytes: what is lost is the end.
    @Test func fault32_aCutConfigurationKeepsWhatIsWhole() throws {
        let long =
            #"{"schema_ver":5,"side":"left","rate_hz":100,"note":"\#(String(repeating: "x", count: 500))","channels":["pinky"]}"#
        let cut = try GloveConfiguration(Array(long.utf8.prefix(510)))
        #expect(cut.isTruncated && cut.side == .left && cut.schema == 5 && cut.fingers.first == "pinky")
        #expect(cut.tactileChannels.count == 80)
        // Cut in the middle of a list, of a text, after a comma, and inside an escape.
        for text in [
            #"{"side":"right","sample_shape":[5,4"#, #"{"side":"right","serial":"a,b"#, #"{"side":"right","#,
            #"{"side":"right","x":"\"#,
        ] {
            let configuration = try GloveConfiguration(Array(text.utf8))
            #expect(configuration.side == .right && configuration.isTruncated)
        }
        // Cut before the side: only the name can tell it.
        let early = Array(#"{"device":"OGLO","serial":"A","si"#.utf8)
        #expect(throws: GloveConfiguration.Invalid.sideUnknown(nil)) { try GloveConfiguration(early) }
        #expect(try GloveConfiguration(early, hint: .left).side == .left)
    }

    @Test func whatCannotBeUsedSaysWhy() {
        #expect(throws: GloveConfiguration.Invalid.sideUnknown("unknown")) {
            try GloveConfiguration(Array(#"{"side":"unknown"}"#.utf8), hint: .left)
        }
        for text in ["", "null", "[]", "{", "hello", "{\"side\"", "\u{0}"] {
            #expect(throws: GloveConfiguration.Invalid.self) { try GloveConfiguration(Array(text.utf8)) }
        }
    }

    /// The side is a whole word of the name, in any case.
    @Test(
        arguments: [
            ("OGLO LEFT", GloveSide.left), ("OGLO_LEFT_TEST01", .left), ("OGLO_V2_RIGHT", .right),
            ("oglo right", .right),
            ("OGLO", nil), ("OGLO_RIGHTHAND", nil), ("OGLO_BRIGHT", nil), ("LEFT RIGHT", nil),
        ] as [(String, GloveSide?)])
    func sideOfTheName(name: String, side: GloveSide?) { #expect(GloveSide(name: name) == side) }
}
