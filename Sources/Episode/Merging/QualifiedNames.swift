/// The names that the streams of several hosts have together: `<host_id>.<stream_id>`; pure.
///
/// A sync server finds a stream's files by its name alone, so two streams may never share one. Dots are legal in names,
/// so host `a` with stream `b.c` and host `a.b` with stream `c` would: the later one, in the order of bytes, gets `~2`
/// behind its name. The same holds where the names differ and the files would be one: a sensor named
/// `cam.timestamps` beside a camera `cam`.
package struct QualifiedNames: Sendable {
    /// A stream of a host, compared by bytes: two spellings of one letter are two names.
    package struct Source: Hashable, Sendable, Comparable {
        package let host: String
        package let stream: String

        package init(host: String, stream: String) {
            self.host = host
            self.stream = stream
        }

        package static func == (a: Self, b: Self) -> Bool {
            a.host.utf8.elementsEqual(b.host.utf8) && a.stream.utf8.elementsEqual(b.stream.utf8)
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(Array(host.utf8))
            hasher.combine(Array(stream.utf8))
        }

        package static func < (a: Self, b: Self) -> Bool {
            if !a.host.utf8.elementsEqual(b.host.utf8) { return a.host.utf8.lexicographicallyPrecedes(b.host.utf8) }
            return a.stream.utf8.lexicographicallyPrecedes(b.stream.utf8)
        }
    }

    private var names: [Source: String] = [:]

    /// `reserved` are names that are no streams' and must stay free, such as `<host>.sync_point`.
    package init(_ sources: [Source], reserved: [String] = []) {
        var taken = Set(reserved.map { Array($0.utf8) })
        for source in Set(sources).sorted() {
            let plain = Self.safe(source.host) + "." + Self.safe(source.stream)
            var name = Self.fitting(plain)
            var number = 2
            while !taken.isDisjoint(with: Self.stems(name)) {
                name = Self.fitting(plain, ending: "~\(number)")
                number += 1
            }
            taken.formUnion(Self.stems(name))
            names[source] = name
        }
    }

    /// The name of a stream; nil when it wasn't in the list.
    package subscript(source: Source) -> String? { names[source] }

    /// What stands before the first extension of any of a stream's files.
    private static func stems(_ name: String) -> [[UInt8]] {
        [Array(name.utf8), Array("\(name).timestamps".utf8)]
    }

    /// A name as it may be a part of a file's: what can't stand there is written as `%` and two digits.
    static func safe(_ text: String) -> String {
        var bytes: [UInt8] = []
        for (index, byte) in text.utf8.enumerated() {
            let isBad = byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "%")
            if isBad || (index == 0 && byte == UInt8(ascii: ".")) {
                let digits = String(byte, radix: 16, uppercase: true)
                bytes += Array("%\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
            } else {
                bytes.append(byte)
            }
        }
        return bytes.isEmpty ? "%" : String(decoding: bytes, as: UTF8.self)
    }

    /// At most 200 bytes, whole letters, so that every extension still fits into the 255 bytes of a file name.
    private static func fitting(_ text: String, ending: String = "") -> String {
        let room = 200 - ending.utf8.count
        guard text.utf8.count > room else { return text + ending }
        var short = text
        while short.utf8.count > room { short.removeLast() }
        return short + ending
    }
}
