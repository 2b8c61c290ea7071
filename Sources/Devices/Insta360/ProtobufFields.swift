/// The fields of a protobuf message without its schema, as far as the camera uses the format.
///
/// Numbers (wire type 0) and byte strings (wire type 2) are kept; fixed-width fields are passed over.
package struct ProtobufFields: Sendable, Hashable {
    package enum Value: Sendable, Hashable {
        case number(UInt64)
        case bytes([UInt8])
    }

    package var fields: [(number: UInt64, value: Value)] {
        zip(numbers, values).map { ($0, $1) }
    }
    private var numbers: [UInt64] = []
    private var values: [Value] = []

    package init() {}

    /// Reads a message; nil when it is cut off or breaks the format.
    package init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let tag = Self.varint(&rest), tag >> 3 > 0 else { return nil }
            switch tag & 7 {
            case 0:
                guard let value = Self.varint(&rest) else { return nil }
                add(tag >> 3, .number(value))
            case 1:
                guard rest.count >= 8 else { return nil }
                rest = rest.dropFirst(8)
            case 2:
                guard let size = Self.varint(&rest).flatMap({ Int(exactly: $0) }), size <= rest.count else {
                    return nil
                }
                add(tag >> 3, .bytes(Array(rest.prefix(size))))
                rest = rest.dropFirst(size)
            case 5:
                guard rest.count >= 4 else { return nil }
                rest = rest.dropFirst(4)
            default: return nil
            }
        }
    }

    package mutating func add(_ number: UInt64, _ value: Value) {
        numbers.append(number)
        values.append(value)
    }

    /// The last field with a number, as the format wants it.
    package subscript(number: UInt64) -> Value? {
        numbers.lastIndex(of: number).map { values[$0] }
    }

    package func number(_ field: UInt64) -> UInt64? {
        guard case .number(let value)? = self[field] else { return nil }
        return value
    }

    package func text(_ field: UInt64) -> String? {
        guard case .bytes(let bytes)? = self[field] else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    package func message(_ field: UInt64) -> ProtobufFields? {
        guard case .bytes(let bytes)? = self[field] else { return nil }
        return ProtobufFields(bytes)
    }

    package var bytes: [UInt8] {
        fields.flatMap { number, value -> [UInt8] in
            switch value {
            case .number(let value): Self.varint(number << 3) + Self.varint(value)
            case .bytes(let bytes): Self.varint(number << 3 | 2) + Self.varint(UInt64(bytes.count)) + bytes
            }
        }
    }

    private static func varint(_ value: UInt64) -> [UInt8] {
        var (rest, bytes): (UInt64, [UInt8]) = (value, [])
        while rest > 0x7F {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    /// At most ten bytes; nil when it is cut off or longer.
    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: 0, through: 63, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }
}
