extension ATTPacket {
    /// The bytes of a packet; all numbers are little-endian.
    package var bytes: [UInt8] {
        var out: [UInt8] = [opcode]
        func put(_ value: UInt16) { out += [UInt8(value & 0xFF), UInt8(value >> 8)] }
        switch self {
        case .errorResponse(let request, let handle, let code):
            out.append(request)
            put(handle)
            out.append(code.rawValue)
        case .exchangeMTURequest(let mtu), .exchangeMTUResponse(let mtu): put(mtu)
        case .findInformationRequest(let first, let last):
            put(first)
            put(last)
        case .findInformationResponse(let items):
            let isShort = items.first?.type.short != nil
            out.append(isShort ? 1 : 2)
            // One response has UUIDs of one size only.
            for item in items where (item.type.short != nil) == isShort {
                put(item.handle)
                out += item.type.littleEndian
            }
        case .findByTypeValueRequest(let first, let last, let type, let value):
            put(first)
            put(last)
            put(type)
            out += value
        case .findByTypeValueResponse(let groups):
            for group in groups {
                put(group.handle)
                put(group.end)
            }
        case .readByTypeRequest(let first, let last, let type),
            .readByGroupTypeRequest(let first, let last, let type):
            put(first)
            put(last)
            out += type.littleEndian
        case .readByTypeResponse(let values):
            let size = values.first?.bytes.count ?? 0
            out.append(UInt8(clamping: size + 2))
            for value in values where value.bytes.count == size {
                put(value.handle)
                out += value.bytes
            }
        case .readByGroupTypeResponse(let groups):
            let size = groups.first?.bytes.count ?? 0
            out.append(UInt8(clamping: size + 4))
            for group in groups where group.bytes.count == size {
                put(group.handle)
                put(group.end)
                out += group.bytes
            }
        case .readRequest(let handle): put(handle)
        case .readBlobRequest(let handle, let offset):
            put(handle)
            put(offset)
        case .readResponse(let value), .readBlobResponse(let value): out += value
        case .writeRequest(let handle, let value), .writeCommand(let handle, let value),
            .notification(let handle, let value), .indication(let handle, let value):
            put(handle)
            out += value
        case .prepareWriteRequest(let handle, let offset, let value),
            .prepareWriteResponse(let handle, let offset, let value):
            put(handle)
            put(offset)
            out += value
        case .executeWriteRequest(let commit): out.append(commit ? 1 : 0)
        case .multipleNotification(let values):
            for value in values {
                put(value.handle)
                put(UInt16(clamping: value.bytes.count))
                out += value.bytes
            }
        case .writeResponse, .executeWriteResponse, .confirmation: break
        }
        return out
    }

    /// Reads a packet; nil when the opcode is unknown or the length doesn't fit it.
    package init?(_ bytes: some Collection<UInt8>) {
        var reader = ByteReader(bytes)
        guard let opcode = reader.u8(), let packet = Self.decode(opcode, &reader) else { return nil }
        self = packet
    }

    private static func decode(_ opcode: UInt8, _ reader: inout ByteReader) -> ATTPacket? {
        switch opcode {
        case 0x01:
            guard let request = reader.u8(), let handle = reader.u16(), let code = reader.u8() else { return nil }
            return reader.ended(.errorResponse(request: request, handle: handle, code: ATTErrorCode(rawValue: code)))
        case 0x02: return reader.u16().flatMap { reader.ended(.exchangeMTURequest($0)) }
        case 0x03: return reader.u16().flatMap { reader.ended(.exchangeMTUResponse($0)) }
        case 0x04:
            guard let first = reader.u16(), let last = reader.u16() else { return nil }
            return reader.ended(.findInformationRequest(first: first, last: last))
        case 0x05: return findInformation(&reader)
        case 0x06:
            guard let first = reader.u16(), let last = reader.u16(), let type = reader.u16() else { return nil }
            return .findByTypeValueRequest(first: first, last: last, type: type, value: reader.rest())
        case 0x07:
            guard !reader.isAtEnd, reader.remaining % 4 == 0 else { return nil }
            var groups: [Group] = []
            while let handle = reader.u16(), let end = reader.u16() {
                groups.append(Group(handle: handle, end: end, bytes: []))
            }
            return .findByTypeValueResponse(groups)
        case 0x08, 0x10:
            guard let first = reader.u16(), let last = reader.u16(), reader.remaining == 2 || reader.remaining == 16,
                let type = BluetoothUUID(littleEndian: reader.rest())
            else { return nil }
            return opcode == 0x08
                ? .readByTypeRequest(first: first, last: last, type: type)
                : .readByGroupTypeRequest(first: first, last: last, type: type)
        case 0x09: return values(&reader)
        case 0x11: return groups(&reader)
        case 0x0A: return reader.u16().flatMap { reader.ended(.readRequest($0)) }
        case 0x0B: return .readResponse(reader.rest())
        case 0x0C:
            guard let handle = reader.u16(), let offset = reader.u16() else { return nil }
            return reader.ended(.readBlobRequest(handle, offset: offset))
        case 0x0D: return .readBlobResponse(reader.rest())
        case 0x12: return reader.u16().map { .writeRequest($0, reader.rest()) }
        case 0x13: return reader.ended(.writeResponse)
        case 0x16, 0x17:
            guard let handle = reader.u16(), let offset = reader.u16() else { return nil }
            let value = reader.rest()
            return opcode == 0x16
                ? .prepareWriteRequest(handle, offset: offset, value)
                : .prepareWriteResponse(handle, offset: offset, value)
        case 0x18:
            guard let flag = reader.u8(), flag <= 1 else { return nil }
            return reader.ended(.executeWriteRequest(commit: flag == 1))
        case 0x19: return reader.ended(.executeWriteResponse)
        case 0x1B: return reader.u16().map { .notification($0, reader.rest()) }
        case 0x1D: return reader.u16().map { .indication($0, reader.rest()) }
        case 0x1E: return reader.ended(.confirmation)
        case 0x23: return notifications(&reader)
        case 0x52: return reader.u16().map { .writeCommand($0, reader.rest()) }
        default: return nil
        }
    }

    private static func findInformation(_ reader: inout ByteReader) -> ATTPacket? {
        guard let format = reader.u8(), format == 1 || format == 2 else { return nil }
        let size = format == 1 ? 2 : 16
        guard !reader.isAtEnd, reader.remaining % (size + 2) == 0 else { return nil }
        var items: [Information] = []
        while let handle = reader.u16(), let raw = reader.bytes(size), let type = BluetoothUUID(littleEndian: raw) {
            items.append(Information(handle: handle, type: type))
        }
        return .findInformationResponse(items)
    }

    private static func values(_ reader: inout ByteReader) -> ATTPacket? {
        guard let size = reader.u8().map(Int.init), size >= 2, !reader.isAtEnd, reader.remaining % size == 0 else {
            return nil
        }
        var values: [Value] = []
        while let handle = reader.u16(), let bytes = reader.bytes(size - 2) {
            values.append(Value(handle: handle, bytes: bytes))
        }
        return .readByTypeResponse(values)
    }

    private static func groups(_ reader: inout ByteReader) -> ATTPacket? {
        guard let size = reader.u8().map(Int.init), size >= 4, !reader.isAtEnd, reader.remaining % size == 0 else {
            return nil
        }
        var groups: [Group] = []
        while let handle = reader.u16(), let end = reader.u16(), let bytes = reader.bytes(size - 4) {
            groups.append(Group(handle: handle, end: end, bytes: bytes))
        }
        return .readByGroupTypeResponse(groups)
    }

    private static func notifications(_ reader: inout ByteReader) -> ATTPacket? {
        var values: [Value] = []
        while !reader.isAtEnd {
            guard let handle = reader.u16(), let size = reader.u16(), let bytes = reader.bytes(Int(size)) else {
                return nil
            }
            values.append(Value(handle: handle, bytes: bytes))
        }
        return values.isEmpty ? nil : .multipleNotification(values)
    }
}
