internal import Glibc
internal import Platform

/// A HID sensor hub with an accelerometer and a gyrometer, given to the kernel through /dev/uhid: its own drivers make IIO
/// devices of it.
///
/// The numbers are of the HID Usage Tables (sensors, page 0x20) and of linux/uhid.h.
final class HIDSensorEdge: EmulatorEdge {
    /// Bytes of an input report: number, state, event, three axes.
    static let reportLength = 9
    /// A count of the accelerometer, m/s²: 0.001 g.
    static let acceleration = 9.80665e-3
    /// A count of the gyrometer, rad/s: 0.01°/s.
    static let rate = Double.pi / 180 * 1e-2

    private enum Event: UInt32 {
        case destroy = 1
        case getReport = 9
        case getReportReply = 10
        case create2 = 11
        case input2 = 12
        case setReport = 13
        case setReportReply = 14
    }

    private let serial: String
    private var device: OpenFile?
    /// For each report the settings as the host wrote them: state, power, sensor state, interval (32 bits), sensitivity.
    private var settings: [UInt8: [UInt8]] = [:]

    init(serial: String) { self.serial = serial }

    deinit { try? plug(false) }

    var place: String { "HID sensor '\(serial)' at /dev/uhid" }

    func plug(_ isIn: Bool) throws {
        guard isIn else {
            emit(.destroy, [])
            device = nil
            return
        }
        guard device == nil else { return }
        device = OpenFile(try FileDescriptor(path: "/dev/uhid", flags: O_RDWR | O_NONBLOCK))
        for report in [1, 2] as [UInt8] { settings[report] = [1, 1, 2, 10, 0, 0, 0, 1, 0] }
        let descriptor = Self.descriptor
        var body = Self.text("Downbeat emulated IMU", 128) + Self.text("emulator", 64) + Self.text(serial, 64)
        body += Self.little(UInt16(descriptor.count)) + Self.little(3 as UInt16)
        for word in [0x1209, 0xDB01, 1, 0] as [UInt32] { body += Self.little(word) }
        emit(.create2, body + descriptor)
    }

    /// Input reports, one after the other.
    func send(_ bytes: [UInt8]) {
        for start in stride(from: 0, through: bytes.count - Self.reportLength, by: Self.reportLength) {
            let report = Array(bytes[start..<(start + Self.reportLength)])
            emit(.input2, Self.little(UInt16(report.count)) + report)
        }
    }

    /// Answers what the kernel asks; gives back the intervals in ms that it sets, as the report's number and 32 bits.
    func receive() -> [[UInt8]] {
        guard let number = device?.number else { return [] }
        var changes: [[UInt8]] = []
        var buffer = [UInt8](repeating: 0, count: 4500)
        while true {
            let count = read(number, &buffer, buffer.count)
            guard count >= 12 else { return changes }
            let id = Array(buffer[4..<8])
            let report = buffer[8]
            switch Event(rawValue: UInt32(buffer[0])) {
            case .getReport:
                let data = [report] + (settings[report] ?? [])
                emit(.getReportReply, id + [0, 0] + Self.little(UInt16(data.count)) + data)
            case .setReport:
                let length = min(Int(buffer[10]) | Int(buffer[11]) << 8, count - 12)
                // The data begins with the report's number.
                if length > 8 {
                    settings[report] = Array(buffer[13..<(12 + length)])
                    changes.append([report] + buffer[16..<20])
                }
                emit(.setReportReply, id + [0, 0])
            default: break
            }
        }
    }

    // MARK: Private

    private func emit(_ event: Event, _ body: [UInt8]) {
        guard let number = device?.number else { return }
        let bytes = Self.little(event.rawValue) + body
        bytes.withUnsafeBytes { _ = write(number, $0.baseAddress, $0.count) }
    }

    private static func text(_ text: String, _ count: Int) -> [UInt8] {
        let bytes = Array(text.utf8.prefix(count - 1))
        return bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }

    private static func little(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    /// The report descriptor: a collection of sensors with two in it.
    private static let descriptor: [UInt8] =
        [0x05, 0x20, 0x09, 0x01, 0xA1, 0x01]
        + sensor(report: 1, usage: 0x73, axes: 0x0453, sensitivity: 0x1452, exponent: 0x0D)
        + sensor(report: 2, usage: 0x76, axes: 0x0457, sensitivity: 0x1456, exponent: 0x0E) + [0xC0]

    private static func sensor(
        report: UInt8, usage: UInt8, axes: UInt16, sensitivity: UInt16, exponent: UInt8
    ) -> [UInt8] {
        var bytes: [UInt8] = [0x85, report, 0x05, 0x20, 0x09, usage, 0xA1, 0x00]
        // Settings: reporting state, power state, sensor state; the interval in ms; the sensitivity.
        bytes += choice(0x0316, 0x0840..<0x0846, 0xB1) + choice(0x0319, 0x0850..<0x0856, 0xB1)
        bytes += choice(0x0201, 0x0800..<0x0807, 0xB1)
        bytes +=
            word(0x030E) + [0x15, 0x00, 0x27, 0xFF, 0xFF, 0xFF, 0x7F, 0x75, 0x20, 0x95, 0x01, 0x55, 0x00, 0xB1, 0x02]
        bytes += word(sensitivity) + [0x15, 0x00, 0x26, 0xFF, 0x7F, 0x75, 0x10, 0x95, 0x01, 0x55, exponent, 0xB1, 0x02]
        // Input: state, event, three axes of 16 bits.
        bytes += choice(0x0201, 0x0800..<0x0807, 0x81) + choice(0x0202, 0x0810..<0x0816, 0x81)
        for axis in 0..<3 as Range<UInt16> {
            bytes += word(axes + axis)
            bytes += [0x16, 0x00, 0x80, 0x26, 0xFF, 0x7F, 0x75, 0x10, 0x95, 0x01, 0x55, exponent, 0x81, 0x02]
        }
        return bytes + [0xC0]
    }

    /// A usage of two bytes.
    private static func word(_ usage: UInt16) -> [UInt8] { [0x0A, UInt8(usage & 0xFF), UInt8(usage >> 8)] }

    /// One of several words, as a byte.
    private static func choice(_ usage: UInt16, _ words: Range<UInt16>, _ main: UInt8) -> [UInt8] {
        word(usage) + [0x15, 0x00, 0x25, UInt8(words.count - 1), 0x75, 0x08, 0x95, 0x01, 0xA1, 0x02]
            + words.flatMap { word($0) } + [main, 0x00, 0xC0]
    }
}
