internal import Devices
internal import Glibc
internal import Platform
internal import Protocol
internal import TestSupport
internal import Testing
internal import Timing

@Suite("IIO scans")
struct IIOScanTests {
    @Test(
        "a scan element's type, as the kernel writes it",
        arguments: [
            ("le:s16/32>>0", [0xFE, 0xFF, 0x34, 0x12], Int64(-2)),
            ("le:s12/16>>4", [0x10, 0x80], -2047),
            ("be:s12/16>>4", [0x80, 0x10], -2047),
            ("be:u16/16", [0x12, 0x34], 0x1234),
            ("le:u8/8>>0", [0xFF], 255),
            ("le:s64/64>>0", [1, 0, 0, 0, 0, 0, 0, 0x80], Int64.min + 1),
            ("le:u64/64>>0", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], Int64.max),
            ("le:u24/32>>8", [0x99, 1, 2, 3], 0x030201),
            ("le:s32/32X4>>0", [0xFF, 0xFF, 0xFF, 0xFF], -1),
        ] as [(String, [UInt8], Int64)])
    func types(text: String, bytes: [UInt8], value: Int64) throws {
        let type = try #require(IIOScanType(text))
        #expect(type.value(in: bytes[...], at: 0) == value)
        #expect(type.value(in: bytes[...], at: 1) == nil)
    }

    @Test(
        "what isn't a type is refused",
        arguments: [
            "", "le", "le:", "xe:s16/16>>0", "le:f32/32>>0", "le:s16", "le:s16/12>>0", "le:s17/16>>0", "le:s16/16>>1",
            "le:s0/16>>0", "le:s16/16>>-1", "le:s16/16X0>>0", "le:s16/16X99999999999999999999>>0", "le:s8/8>0",
        ])
    func refused(text: String) { #expect(IIOScanType(text) == nil) }

    @Test("each element is aligned to its size, and the scan to the largest")
    func layout() throws {
        func element(_ name: String, _ index: Int, _ type: String) throws -> IIOScanLayout.Element {
            .init(name: name, index: index, type: try #require(IIOScanType(type)))
        }
        // A hid-sensor: three axes of 16 bits in 32, four bytes of nothing, the stamp.
        let hid = IIOScanLayout([
            try element("in_timestamp", 3, "le:s64/64>>0"), try element("in_accel_z", 2, "le:s16/32>>0"),
            try element("in_accel_x", 0, "le:s16/32>>0"), try element("in_accel_y", 1, "le:s16/32>>0"),
        ])
        #expect(hid.elements.map(\.offset) == [0, 4, 8, 16])
        #expect(hid.size == 24)
        let odd = IIOScanLayout([
            try element("a", 0, "le:u8/8>>0"), try element("b", 1, "be:s16/16>>0"), try element("c", 2, "le:u8/8X3>>0"),
        ])
        #expect(odd.elements.map(\.offset) == [0, 2, 4])
        #expect(odd.size == 8)
        #expect(odd.scans(in: [UInt8](repeating: 0, count: 23)).count == 2)
        #expect(IIOScanLayout([]).scans(in: [1, 2, 3]).isEmpty)
    }

    @Test("kernel units become SI, and the mount matrix turns the axes")
    func converting() throws {
        let accel = try ["x", "y", "z"].map {
            // 0.001 g a count.
            try #require(IIOChannel(attribute: "in_accel_\($0)", scale: 0.00980665, offset: 0))
        }
        let temperature = try #require(IIOChannel(attribute: "in_temp", scale: 10, offset: 2731))
        let field = try #require(IIOChannel(attribute: "in_magn_x", scale: 0.001, offset: 0))
        #expect(IIOChannel(attribute: "in_voltage0", scale: 1, offset: 0) == nil)
        #expect(IIOChannel(attribute: "in_temperature", scale: 1, offset: 0) == nil)
        let matrix = try #require(IIOMountMatrix("0, -1, 0; 1, 0, 0; 0, 0, 1"))
        let converter = IIOConverter(accel + [temperature, field]) { $0 == "accel" ? matrix : nil }
        #expect(converter.channels.map(\.name) == ["accel_x", "accel_y", "accel_z", "temp", "mag_x"])
        #expect(converter.channels.map(\.unit) == ["m/s^2", "m/s^2", "m/s^2", "degC", "T"])
        let row = try #require(converter.row([100, 200, 1000, 0, 500]))
        for (value, expected) in zip(row, [-1.96133, 0.980665, 9.80665, 27.31, 5e-5]) {
            #expect(abs(value - expected) < 1e-12)
        }
        #expect(converter.row([1]) == nil)
    }

    @Test(
        "what isn't a mount matrix is refused",
        arguments: ["", "1, 0; 0, 1", "a, b, c; 0, 1, 0; 0, 0, 1", "1,0,0;0,1,0"])
    func matrix(text: String) { #expect(IIOMountMatrix(text) == nil) }
}

@Suite("IIO sensor on kernel files of our own", .timeLimit(.minutes(1)))
struct IIOSensorTests {
    /// A device's files as a hid-sensor has them; the node is a pipe.
    private final class Files_: Sendable {
        let folder: TemporaryFolder
        let root: IIOFolder.Root
        let writer: Int32

        init(name: String = "accel_3d", index: Int = 0, extra: [String: String] = [:]) throws {
            folder = try TemporaryFolder()
            root = IIOFolder.Root(devices: "\(folder.path)/sys", nodes: "\(folder.path)/dev")
            let device = "\(root.devices)/iio:device\(index)"
            var files = [
                "name": name, "current_timestamp_clock": "realtime\n", "buffer/enable": "0", "buffer/length": "2",
                "buffer/watermark": "1", "in_accel_scale": "0.009806650\u{0}",
                "in_accel_sampling_frequency": "100.000000\n",
                "trigger/current_trigger": "\n", "../trigger0/name": "\(name)-dev\(index)\n",
                "scan_elements/in_timestamp_en": "0", "scan_elements/in_timestamp_index": "3",
                "scan_elements/in_timestamp_type": "le:s64/64>>0",
            ]
            for (index, axis) in ["x", "y", "z"].enumerated() {
                files["scan_elements/in_accel_\(axis)_en"] = "0"
                files["scan_elements/in_accel_\(axis)_index"] = "\(index)\n"
                files["scan_elements/in_accel_\(axis)_type"] = "le:s16/32>>0\n"
                files["in_accel_\(axis)_raw"] = "\(index * 100)\n"
            }
            for (file, text) in files.merging(extra, uniquingKeysWith: { $1 }) {
                let path = "\(device)/\(file)"
                try Files.makeFolder(FilePath.parent(of: device))
                try Files.makeFolder(FilePath.parent(of: path))
                try AtomicFile.write(Array(text.utf8), to: path)
            }
            try Files.makeFolder(root.nodes)
            let node = "\(root.nodes)/iio:device\(index)"
            guard mkfifo(node, 0o600) == 0 else { throw Errno.current }
            writer = Glibc.open(node, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        }

        deinit { close(writer) }

        func read(_ attribute: String) -> String {
            let bytes = (try? Files.read("\(root.devices)/iio:device0/\(attribute)")) ?? []
            return String(decoding: bytes, as: UTF8.self)
        }

        func scan(_ x: Int16, _ y: Int16, _ z: Int16, stamp: Int64) {
            var bytes: [UInt8] = []
            for value in [x, y, z] {
                bytes += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8), 0xAB, 0xCD]
            }
            bytes += [0, 0, 0, 0]
            for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: stamp >> (8 * Int64(shift)))) }
            bytes.withUnsafeBytes { _ = write(writer, $0.baseAddress, $0.count) }
        }
    }

    private let id = StreamID(unchecked: "imu")

    @Test("the buffer: set up as wanted, units and stamps right, losses told by the stamps")
    func buffer() async throws {
        let files = try Files_()
        var options = IIOIMU.Options(device: "accel_3d")
        options.rate = 100
        let sensor = IIOIMU(id, options, root: files.root)
        let begin = HostClock.now
        files.scan(0, 0, 1000, stamp: begin.nanoseconds)
        let description = try await sensor.open()
        #expect(description.sensor?.channels.map(\.name) == ["accel_x", "accel_y", "accel_z"])
        #expect(description.sensor?.channels.map(\.unit) == ["m/s^2", "m/s^2", "m/s^2"])
        #expect(description.timestampSource == "driver at its trigger, CLOCK_MONOTONIC")
        #expect(description.nominalRate == 100)
        #expect(files.read("buffer/enable").hasPrefix("1"))
        #expect(files.read("current_timestamp_clock").hasPrefix("monotonic"))
        #expect(files.read("trigger/current_trigger").hasPrefix("accel_3d-dev0"))
        #expect(files.read("scan_elements/in_accel_y_en").hasPrefix("1"))
        let sink = EmulatedCollector()
        try await sensor.start(sink)
        for index in 1...50 where ![20, 21].contains(index) {
            files.scan(Int16(index), -1000, 1000, stamp: (begin + .milliseconds(Int64(index) * 10)).nanoseconds)
        }
        let content = await sink.wait(forSamples: 48)
        await sensor.close()
        #expect(files.read("buffer/enable").hasPrefix("0"))
        #expect(
            content.samples.map(\.capture)
                == (1...50).filter { ![20, 21].contains($0) }.map { begin + .milliseconds(Int64($0) * 10) })
        #expect(content.samples.allSatisfy { $0.device?.nanoseconds == $0.capture.nanoseconds })
        guard case .values(let row) = content.samples[0].payload else { return }
        #expect(zip(row, [0.00980665, -9.80665, 9.80665]).allSatisfy { abs($0 - $1) < 1e-12 })
        #expect(
            content.events.contains {
                if case .lost(2, let before) = $0 { before == begin + .milliseconds(220) } else { false }
            })
    }

    @Test("stamps of another clock are mapped by their arrival, and that is said")
    func otherClock() async throws {
        let files = try Files_()
        let sensor = IIOIMU(id, IIOIMU.Options(device: "accel_3d"), root: files.root)
        let far = Interval.milliseconds(1_000_000_000)
        files.scan(0, 0, 0, stamp: (HostClock.now + far).nanoseconds)
        _ = try await sensor.open()
        let sink = EmulatedCollector()
        try await sensor.start(sink)
        let now = HostClock.now
        files.scan(1, 0, 0, stamp: (now + far).nanoseconds)
        let content = await sink.wait(forSamples: 1)
        await sensor.close()
        #expect((content.samples[0].capture - now).magnitude <= content.samples[0].uncertainty)
        #expect(content.samples[0].device == Timestamp(nanoseconds: (now + far).nanoseconds))
    }

    @Test("without a buffer the values are read one by one")
    func polling() async throws {
        let files = try Files_()
        var options = IIOIMU.Options(device: "accel_3d")
        (options.rate, options.mode) = (200, .poll)
        let sensor = IIOIMU(id, options, root: files.root)
        let description = try await sensor.open()
        #expect(description.timestampSource == "reading of the values, CLOCK_MONOTONIC")
        let sink = EmulatedCollector()
        try await sensor.start(sink)
        let content = await sink.wait(forSamples: 5)
        await sensor.close()
        guard case .values(let row) = content.samples[0].payload else { return }
        #expect(zip(row, [0, 0.980665, 1.96133]).allSatisfy { abs($0 - $1) < 1e-12 })
        #expect(zip(content.samples, content.samples.dropFirst()).allSatisfy { $0.capture <= $1.capture })
    }

    @Test("an index is refused, and a name that two sensors have")
    func naming() throws {
        let files = try Files_(extra: ["label": "wrist\n"])
        let folders = IIOFolder.all(files.root)
        #expect(folders.map(\.identity) == ["label:wrist"])
        guard case .refused(_, let cure) = IIOSelection("iio:device0", among: folders) else {
            Issue.record("an index was taken")
            return
        }
        #expect(cure.contains("label:wrist"))
        guard case .found = IIOSelection("wrist", among: folders),
            case .found = IIOSelection("accel_3d", among: folders),
            case .missing = IIOSelection("gyro_3d", among: folders),
            case .refused = IIOSelection("accel_3d", among: folders + folders)
        else {
            Issue.record("the wrong sensor was taken")
            return
        }
    }

    @Test("the counts of plugs are no part of an identity")
    func counters() throws {
        // The same place with other counters has the same identity.
        func identity(_ hub: String, _ hid: String) throws -> String {
            let files = try Files_()
            let real = "\(files.folder.path)/\(hid)/\(hub)/iio:device0"
            try Files.makeFolder(FilePath.parent(of: real))
            try Files.rename("\(files.root.devices)/iio:device0", to: real)
            #expect(symlink(real, "\(files.root.devices)/iio:device0") == 0)
            return IIOFolder.all(files.root)[0].identity.split(separator: "/").suffix(3).joined(separator: "/")
        }
        let first = try identity("HID-SENSOR-200073.1.auto", "0003:1209:DB01.0001")
        #expect(first == "0003:1209:DB01/HID-SENSOR-200073/accel_3d")
        #expect(try identity("HID-SENSOR-200073.4.auto", "0003:1209:DB01.000A") == first)
    }
}
