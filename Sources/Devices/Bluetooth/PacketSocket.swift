internal import CBlueZ
internal import Platform

/// Calls on sockets that keep packets apart; none of them blocks.
enum PacketSocket {
    enum Received {
        case packet([UInt8])
        case nothing
        case end(Errno)
    }

    /// One packet; a longer one is cut at the buffer's end.
    static func receive(_ descriptor: Int32, into buffer: inout [UInt8]) -> Received {
        while true {
            let count = cbluez_receive(descriptor, &buffer, buffer.count)
            let error = Errno.current
            if count > 0 { return .packet(Array(buffer.prefix(count))) }
            if count == 0 { return .end(Errno(rawValue: 0)) }
            if error == .interrupted { continue }
            return error == .again ? .nothing : .end(error)
        }
    }

    /// False when the socket is full.
    static func send(_ descriptor: Int32, _ bytes: [UInt8]) throws(Errno) -> Bool {
        do throws(Errno) {
            try throwingErrno { cbluez_send(descriptor, bytes, bytes.count) }
            return true
        } catch {
            if error == .again { return false }
            throw error
        }
    }
}
