internal import Devices
internal import Timing

extension FuzzTarget {
    static let inertial = [
        FuzzTarget(name: "serial-csv") { bytes in serial(bytes, csv) },
        FuzzTarget(name: "serial-json") { bytes in serial(bytes, json) },
        FuzzTarget(name: "witmotion") { bytes in
            var decoder = WitMotionDecoder()
            var given = 0
            for piece in pieces(bytes) {
                given += piece.count
                for frame in decoder.take(piece) {
                    demand(frame.values.map { $0.allSatisfy(\.isFinite) } ?? true, "a motion is of finite numbers")
                }
            }
            demand(decoder.skipped <= given, "no byte is left out twice")
            if let command = WitMotionCommand(bytes) { demand(command.bytes == bytes, "a command reads back") }
        },
        FuzzTarget(name: "iio") { bytes in
            // A line of types, a NUL, then what the buffer gives.
            let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
            let words = String(decoding: parts[0], as: UTF8.self).split(separator: ",")
            var elements: [IIOScanLayout.Element] = []
            for (index, word) in words.prefix(16).enumerated() {
                guard let type = IIOScanType(String(word)) else { continue }
                elements.append(.init(name: index == 0 ? "in_timestamp" : "in_accel_x", index: index, type: type))
            }
            let layout = IIOScanLayout(elements)
            let channels = elements.dropFirst(0).filter { $0.name != "in_timestamp" }.flatMap { element in
                [IIOChannel?](
                    repeating: IIOChannel(attribute: "in_accel_x", scale: 0.5, offset: 1), count: element.type.count)
            }.compactMap(\.self)
            let converter = IIOConverter(channels) { _ in nil }
            var flow = IIOFlow(layout, converter, rate: 100, stamps: .monotonic)
            let content = parts.count > 1 ? Array(parts[1]) : []
            for action in flow.take(content, at: Timestamp(nanoseconds: 1_000_000_000)) {
                if case .deliver(let sample) = action { demand(sample.uncertainty >= .zero, "no negative uncertainty") }
            }
            _ = IIOMountMatrix(String(decoding: bytes, as: UTF8.self))
        },
        FuzzTarget(name: "counter") { bytes in
            guard bytes.count > 9 else { return }
            let shape = CounterShape(bits: Int(bytes[0] % 70), ticksPerSecond: Int64(number(bytes[1..<9]) >> 32))
            var clock = DeviceClock(shape, path: .bluetooth(connectionInterval: .milliseconds(15)))
            var last: Timestamp<HostTime>?
            for start in stride(from: 9, to: bytes.count - 16, by: 16) {
                let arrival = Timestamp<HostTime>(nanoseconds: Int64(bitPattern: number(bytes[start..<(start + 8)])))
                let stamp = clock.stamp(number(bytes[(start + 8)..<(start + 16)]), arrival: arrival)
                demand(stamp.uncertainty >= .zero, "no negative uncertainty")
                demand(last.map { $0 <= stamp.capture } ?? true, "captures never go back")
                last = stamp.capture
                if bytes[start] == 7 { clock.linkLost() }
            }
        },
    ]

    private static func serial(_ bytes: [UInt8], _ layout: LineLayout) {
        let path = DeviceClock.Path(leastDelay: .zero ... .microseconds(500), burst: .milliseconds(20))
        var flow = SerialFlow(layout, rate: 100, path: path)
        var arrival = Timestamp<HostTime>(nanoseconds: 5_000_000_000)
        var last: Timestamp<HostTime>?
        for piece in pieces(bytes) {
            arrival += .milliseconds(3)
            for action in flow.take(piece, at: arrival) {
                guard case .deliver(let sample) = action, case .values(let row) = sample.payload else { continue }
                demand(row.count == layout.channels.count, "a row has all channels")
                demand(row.allSatisfy(\.isFinite), "a row is of finite numbers")
                demand(last.map { $0 <= sample.capture } ?? true, "captures never go back")
                last = sample.capture
            }
            if piece.first == 0xFF { flow.interrupted("fuzz") }
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static let csv = LineLayout(
        format: .csv, prefix: Array("$IMU,".utf8),
        channels: [
            .init(name: "x", unit: "m/s^2", place: .field(2), scale: 9.80665),
            .init(name: "y", unit: "m/s^2", place: .field(3), offset: 1),
        ],
        counter: .init(place: .field(1), shape: .microseconds32), sequence: .field(0))

    private static let json = LineLayout(
        format: .json,
        channels: [
            .init(name: "x", unit: "m/s^2", place: .key(Array("acc.x".utf8))),
            .init(name: "y", unit: "rad/s", place: .key(Array("gyro.1".utf8))),
        ],
        counter: .init(
            place: .key(Array("t".utf8)), shape: CounterShape(bits: 64, ticksPerSecond: 1_000_000_000),
            ticksPerUnit: 1_000_000))
}
