internal import CBlueZ
package import Platform

/// A raw socket to one adapter that hears its events and sends commands; it needs CAP_NET_RAW for all but a few.
///
/// Concurrency: used by one thread.
package final class HCISocket {
    /// LE controller commands: group and number (Vol 4 Part E 7.8).
    enum Command: UInt16 {
        case setScanParameters = 0x0B
        case setScanEnable = 0x0C
        case connectionUpdate = 0x13
        case setExtendedScanParameters = 0x41
        case setExtendedScanEnable = 0x42

        static let group: UInt16 = 0x08
        var opcode: UInt16 { Self.group << 10 | rawValue }
    }

    private let file: FileDescriptor
    package var descriptor: Int32 { file.rawValue }

    package init(adapter: Int) throws(Errno) {
        file = FileDescriptor(owning: try throwingErrno { cbluez_event_socket(Int32(adapter)) })
    }

    func send(_ command: Command, _ parameters: [UInt8]) throws(Errno) {
        let length = UInt8(clamping: parameters.count)
        try throwingErrno {
            cbluez_send_command(file.rawValue, Command.group, command.rawValue, parameters, length)
        }
    }

    /// The next event; nil when there is none now.
    package func next() throws(Errno) -> HCIEvent? {
        var buffer = [UInt8](repeating: 0, count: 1024)
        while true {
            switch PacketSocket.receive(file.rawValue, into: &buffer) {
            case .nothing: return nil
            case .end(let error): throw error
            // The first byte is the packet type; only events pass the filter.
            case .packet(let packet): if let event = HCIEvent(packet.dropFirst()) { return event }
            }
        }
    }
}
