/// Reads one object of a configuration file; each error names file, key, what was read, and what is legal.
///
/// A key that no one asked for is an error too: a misspelt key must not pass as a default.
package struct ConfigReader {
    /// One sentence for a person.
    package struct Invalid: Error, Sendable, CustomStringConvertible {
        package let description: String
        package init(description: String) { self.description = description }
    }

    package let file: String
    private let path: String
    private let members: [String: JSONValue]
    private var asked: Set<String> = []

    /// Parses a JSON5 text whose top is an object.
    package init(file: String, text: [UInt8]) throws(Invalid) {
        let value: JSONValue
        do { value = try JSONText.decodeJSON5(JSONValue.self, from: text) } catch {
            throw Invalid(description: "\(file): not JSON5: \(error)")
        }
        try self.init(file: file, path: "", value: value)
    }

    package init(file: String, path: String, value: JSONValue) throws(Invalid) {
        self.file = file
        self.path = path
        guard case .object(let members) = value else {
            throw Invalid(
                description: "\(file): '\(path.isEmpty ? "the top" : path)' is \(value.kindName); an object is needed")
        }
        self.members = members
    }

    /// The full name of a key: `streams[0].rate`.
    package func name(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    package func invalid(_ key: String, _ read: JSONValue?, legal: String) -> Invalid {
        let what: String
        switch read {
        case nil: what = "is missing"
        case .string(let text): what = "is '\(text)'"
        case .integer(let value): what = "is \(value)"
        case .number(let value): what = "is \(value)"
        case .bool(let value): what = "is \(value)"
        case .some(let value): what = "is \(value.kindName)"
        }
        return Invalid(description: "\(file): '\(name(key))' \(what); legal is \(legal)")
    }

    package mutating func value(_ key: String) -> JSONValue? {
        asked.insert(key)
        let value = members[key]
        return value == .null ? nil : value
    }

    /// A text; `where` says in words what it must be, `check` decides.
    package mutating func string(
        _ key: String, default fallback: String? = nil, legal: String = "a text",
        check: (String) -> Bool = { _ in true }
    ) throws(Invalid) -> String {
        let read = value(key)
        if read == nil, let fallback { return fallback }
        guard case .string(let text) = read, check(text) else { throw invalid(key, read, legal: legal) }
        return text
    }

    package mutating func optionalString(_ key: String, legal: String = "a text") throws(Invalid) -> String? {
        guard members[key] != nil, members[key] != .null else {
            asked.insert(key)
            return nil
        }
        return try string(key, legal: legal)
    }

    package mutating func integer(_ key: String, default fallback: Int64? = nil, in range: ClosedRange<Int64>)
        throws(Invalid) -> Int64
    {
        let read = value(key)
        if read == nil, let fallback { return fallback }
        guard case .integer(let number) = read, range.contains(number) else {
            throw invalid(key, read, legal: "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    package mutating func number(_ key: String, default fallback: Double? = nil, in range: ClosedRange<Double>)
        throws(Invalid) -> Double
    {
        let read = value(key)
        if read == nil, let fallback { return fallback }
        guard let number = read?.double, range.contains(number) else {
            throw invalid(key, read, legal: "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    package mutating func bool(_ key: String, default fallback: Bool? = nil) throws(Invalid) -> Bool {
        let read = value(key)
        if read == nil, let fallback { return fallback }
        guard case .bool(let flag) = read else { throw invalid(key, read, legal: "true or false") }
        return flag
    }

    /// One of a closed set of words.
    package mutating func word<T: RawRepresentable<String> & CaseIterable>(
        _ key: String, default fallback: T? = nil
    ) throws(Invalid) -> T {
        let read = value(key)
        if read == nil, let fallback { return fallback }
        guard case .string(let text) = read, let word = T(rawValue: text) else {
            let words = T.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
            throw invalid(key, read, legal: "one of \(words)")
        }
        return word
    }

    /// A list of texts; empty when the key is absent.
    package mutating func strings(_ key: String, legal: String = "a list of texts") throws(Invalid) -> [String] {
        let read = value(key)
        if read == nil { return [] }
        guard case .array(let items) = read else { throw invalid(key, read, legal: legal) }
        var texts: [String] = []
        for item in items {
            guard case .string(let text) = item else { throw invalid(key, item, legal: legal) }
            texts.append(text)
        }
        return texts
    }

    /// A list of three numbers or so.
    package mutating func numbers(_ key: String, count: Int, default fallback: [Double]) throws(Invalid) -> [Double] {
        let read = value(key)
        if read == nil { return fallback }
        guard case .array(let items) = read, items.count == count else {
            throw invalid(key, read, legal: "a list of \(count) numbers")
        }
        var numbers: [Double] = []
        for item in items {
            guard let number = item.double, number.isFinite else {
                throw invalid(key, item, legal: "a list of \(count) numbers")
            }
            numbers.append(number)
        }
        return numbers
    }

    /// An object inside; nil when the key is absent.
    package mutating func object(_ key: String) throws(Invalid) -> ConfigReader? {
        guard let read = value(key) else { return nil }
        return try ConfigReader(file: file, path: name(key), value: read)
    }

    /// A list of objects; empty when the key is absent.
    package mutating func objects(_ key: String) throws(Invalid) -> [ConfigReader] {
        guard let read = value(key) else { return [] }
        guard case .array(let items) = read else { throw invalid(key, read, legal: "a list of objects") }
        var readers: [ConfigReader] = []
        for (index, item) in items.enumerated() {
            readers.append(try ConfigReader(file: file, path: "\(name(key))[\(index)]", value: item))
        }
        return readers
    }

    /// Call it last: an unknown key is refused, with the keys that are known here.
    package func finish() throws(Invalid) {
        let unknown = members.keys.filter { !asked.contains($0) }.sorted()
        guard let first = unknown.first else { return }
        let known = asked.sorted().map { "'\($0)'" }.joined(separator: ", ")
        throw Invalid(description: "\(file): '\(name(first))' is not a key here; legal keys are \(known)")
    }
}
