internal import FoundationEssentials

/// JSON texts to values and back, by Foundation's codec: whole numbers stay whole, keys come out sorted.
package enum JSONText {
    package struct Malformed: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Compact, on one line, sorted keys, slashes as they are: the same value always gives the same bytes.
    package static func encode(_ value: some Encodable) throws(Malformed) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try bytes(encoder, value)
    }

    /// For people and for files: indented, sorted keys, a line feed at the end.
    package static func encodePretty(_ value: some Encodable) throws(Malformed) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return try bytes(encoder, value) + [0x0A]
    }

    package static func decode<T: Decodable>(_ type: T.Type, from text: [UInt8]) throws(Malformed) -> T {
        try decode(type, from: text, json5: false)
    }

    /// JSON5: comments, trailing commas, bare keys.
    package static func decodeJSON5<T: Decodable>(_ type: T.Type, from text: [UInt8]) throws(Malformed) -> T {
        try decode(type, from: text, json5: true)
    }

    private static func decode<T: Decodable>(_ type: T.Type, from text: [UInt8], json5: Bool) throws(Malformed) -> T {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = json5
        do {
            return try decoder.decode(type, from: Data(text))
        } catch let error as DecodingError {
            throw Malformed(description: describe(error))
        } catch {
            throw Malformed(description: "\(error)")
        }
    }

    private static func bytes(_ encoder: JSONEncoder, _ value: some Encodable) throws(Malformed) -> [UInt8] {
        do { return [UInt8](try encoder.encode(value)) } catch { throw Malformed(description: "\(error)") }
    }

    private static func describe(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            let path = context.codingPath.map(\.stringValue).joined(separator: ".")
            return path.isEmpty ? "at the top" : "at '\(path)'"
        }
        switch error {
        case .keyNotFound(let key, let context): return "key '\(key.stringValue)' is missing \(place(context))"
        case .typeMismatch(let type, let context): return "\(place(context)) a \(type) is needed"
        case .valueNotFound(let type, let context): return "\(place(context)) a \(type) is needed, found null"
        case .dataCorrupted(let context):
            let cause = context.underlyingError.map { ": \($0)" } ?? ""
            return "\(place(context)): \(context.debugDescription)\(cause)"
        @unknown default: return "\(error)"
        }
    }
}
