internal import CBlueZ
internal import Glibc
internal import Platform

/// The management interface of the kernel's Bluetooth, as far as an adapter has to be switched on.
///
/// Its packets: operation, adapter and length in 16 bits each, then the parameters (BlueZ, doc/mgmt-api).
///
/// Concurrency: used by one thread; each call waits for its answer.
final class BluetoothControl {
    enum Setting: UInt16 {
        case powered = 0x0005
        case lowEnergy = 0x000D
    }

    private static let limit: Int32 = 5_000
    private let file: FileDescriptor

    init() throws(Errno) { file = FileDescriptor(owning: try throwingErrno { cbluez_control_socket() }) }

    func set(_ setting: Setting, _ value: Bool, adapter: Int) throws(Errno) {
        let index = UInt16(clamping: adapter)
        let fields: [UInt16] = [setting.rawValue, index, 1]
        try file.writeAll(fields.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } + [value ? 1 : 0])
        // Events of others come in between; a hundred of them are no answer.
        for _ in 0..<100 {
            var poll = pollfd(fd: file.rawValue, events: Int16(POLLIN), revents: 0)
            guard try throwingErrno({ Glibc.poll(&poll, 1, Self.limit) }) > 0 else { throw .timedOut }
            var reader = ByteReader(try file.read(upTo: 512))
            guard let event = reader.u16(), let from = reader.u16(), reader.u16() != nil, let operation = reader.u16(),
                let status = reader.u8(), event == 1 || event == 2, from == index, operation == setting.rawValue
            else { continue }
            guard status == 0 else { throw Self.error(status) }
            return
        }
        throw .timedOut
    }

    /// The statuses of the interface as the nearest error of the system.
    private static func error(_ status: UInt8) -> Errno {
        switch status {
        case 0x0A: .busy
        case 0x0C: Errno(rawValue: EOPNOTSUPP)
        case 0x12: Errno(rawValue: ERFKILL)
        case 0x14: .notPermitted
        case 0x11: .noDevice
        default: .inputOutput
        }
    }
}
