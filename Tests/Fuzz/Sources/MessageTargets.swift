internal import Protocol

extension FuzzTarget {
    static let messages = [
        FuzzTarget(name: "message") { bytes in
            // Frames as a byte of length in units of 16 and so many bytes; the rest is the last frame.
            var (frames, rest) = ([[UInt8]](), bytes[...])
            while let length = rest.popFirst() {
                let count = min(Int(length) * 16, rest.count)
                frames.append(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            guard let envelope = try? MessageCodec.decode(frames) else { return }
            guard let again = try? MessageCodec.encode(envelope), let read = try? MessageCodec.decode(again) else {
                fatalError("what was read can't be written")
            }
            demand(read.command == envelope.command, "a message reads back")
        },
        FuzzTarget(name: "json") { bytes in
            guard let value = try? JSONText.decode(JSONValue.self, from: bytes) else { return }
            guard let text = try? JSONText.encode(value) else { return }
            demand((try? JSONText.decode(JSONValue.self, from: text)) == value, "JSON reads back")
        },
        FuzzTarget(name: "configuration") { bytes in
            guard var reader = try? ConfigReader(file: "fuzz", text: bytes) else { return }
            _ = try? reader.integer("n", in: 0...10)
            _ = try? reader.strings("list")
            _ = try? reader.objects("streams")
            try? reader.finish()
        },
    ]
}
