internal import Timing

/// An event of the controller (Core specification 5.4, Vol 4 Part E 7.7), as far as a central needs them.
package enum HCIEvent: Sendable, Hashable {
    /// What an advertising report says; the arrival isn't known here.
    package struct Report: Sendable, Hashable {
        package var address: BluetoothAddress
        package var data: [UInt8]
        package var signal: Int?
        package var isConnectable: Bool

        package init(address: BluetoothAddress, data: [UInt8], signal: Int?, isConnectable: Bool) {
            self.address = address
            self.data = data
            self.signal = signal
            self.isConnectable = isConnectable
        }
    }

    case disconnected(handle: UInt16, reason: UInt8)
    case connected(handle: UInt16, address: BluetoothAddress, ConnectionParameters)
    case connectionFailed(status: UInt8)
    case parametersChanged(handle: UInt16, ConnectionParameters)
    case reports([Report])
    /// The end of a command, or that it was taken up; 0 is success.
    case commandResult(opcode: UInt16, status: UInt8)
    case other(UInt8)

    /// Reads an event without the packet type byte in front; nil when it is cut off.
    package init?(_ bytes: some Collection<UInt8>) {
        var reader = ByteReader(bytes)
        guard let code = reader.u8(), let length = reader.u8(), reader.remaining >= Int(length),
            let body = reader.bytes(Int(length))
        else { return nil }
        var parameters = ByteReader(body)
        guard let event = Self.decode(code, &parameters) else { return nil }
        self = event
    }

    private static func decode(_ code: UInt8, _ reader: inout ByteReader) -> HCIEvent? {
        switch code {
        case 0x05:
            guard let status = reader.u8(), let handle = reader.u16(), let reason = reader.u8() else { return nil }
            return status == 0 ? .disconnected(handle: handle & 0x0FFF, reason: reason) : .other(code)
        case 0x0E:
            guard reader.u8() != nil, let opcode = reader.u16() else { return nil }
            return .commandResult(opcode: opcode, status: reader.u8() ?? 0)
        case 0x0F:
            guard let status = reader.u8(), reader.u8() != nil, let opcode = reader.u16() else { return nil }
            return .commandResult(opcode: opcode, status: status)
        case 0x3E:
            guard let subevent = reader.u8() else { return nil }
            return lowEnergy(subevent, &reader)
        default: return .other(code)
        }
    }

    private static func lowEnergy(_ subevent: UInt8, _ reader: inout ByteReader) -> HCIEvent? {
        switch subevent {
        case 0x01, 0x0A: return connection(isEnhanced: subevent == 0x0A, &reader)
        case 0x02: return reports(&reader)
        case 0x03:
            guard let status = reader.u8(), let handle = reader.u16(), let parameters = parameters(&reader) else {
                return nil
            }
            return status == 0 ? .parametersChanged(handle: handle & 0x0FFF, parameters) : .other(0x3E)
        case 0x0D: return extendedReports(&reader)
        default: return .other(0x3E)
        }
    }

    private static func parameters(_ reader: inout ByteReader) -> ConnectionParameters? {
        guard let interval = reader.u16(), let latency = reader.u16(), let timeout = reader.u16() else { return nil }
        return ConnectionParameters(intervalUnits: interval, latency: latency, timeoutUnits: timeout)
    }

    private static func address(_ kind: UInt8, _ raw: [UInt8]) -> BluetoothAddress? {
        BluetoothAddress(littleEndian: raw, kind & 1 == 0 ? .public : .random)
    }

    private static func connection(isEnhanced: Bool, _ reader: inout ByteReader) -> HCIEvent? {
        guard let status = reader.u8(), let handle = reader.u16(), reader.u8() != nil, let kind = reader.u8(),
            let raw = reader.bytes(6)
        else { return nil }
        guard status == 0 else { return .connectionFailed(status: status) }
        if isEnhanced, reader.bytes(12) == nil { return nil }
        guard let address = address(kind, raw), let parameters = parameters(&reader) else { return nil }
        return .connected(handle: handle & 0x0FFF, address: address, parameters)
    }

    /// The controllers send one report in each event, and the kernel reads several in a row; so does this.
    private static func reports(_ reader: inout ByteReader) -> HCIEvent? {
        guard let count = reader.u8() else { return nil }
        var reports: [Report] = []
        for _ in 0..<count {
            guard let type = reader.u8(), let kind = reader.u8(), let raw = reader.bytes(6),
                let address = address(kind, raw), let length = reader.u8(), let data = reader.bytes(Int(length)),
                let signal = reader.u8()
            else { return reports.isEmpty ? nil : .reports(reports) }
            // 0 and 1 are connectable, 4 is the answer to a scan and says nothing of it.
            reports.append(
                Report(address: address, data: data, signal: strength(signal), isConnectable: [0, 1, 4].contains(type)))
        }
        return .reports(reports)
    }

    private static func extendedReports(_ reader: inout ByteReader) -> HCIEvent? {
        guard let count = reader.u8() else { return nil }
        var reports: [Report] = []
        for _ in 0..<count {
            guard let type = reader.u16(), let kind = reader.u8(), let raw = reader.bytes(6),
                let address = address(kind, raw), reader.bytes(4) != nil, let signal = reader.u8(),
                reader.bytes(9) != nil, let length = reader.u8(), let data = reader.bytes(Int(length))
            else { return reports.isEmpty ? nil : .reports(reports) }
            // Bit 0: connectable; bit 3: an answer to a scan.
            reports.append(
                Report(address: address, data: data, signal: strength(signal), isConnectable: type & 0b1001 != 0))
        }
        return .reports(reports)
    }

    /// 127 is "not available".
    private static func strength(_ raw: UInt8) -> Int? { raw == 127 ? nil : Int(Int8(bitPattern: raw)) }
}
