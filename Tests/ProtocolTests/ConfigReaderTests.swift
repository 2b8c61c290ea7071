internal import Protocol
internal import Testing

@Suite struct ConfigReaderTests {
    private func reader(_ text: String) throws -> ConfigReader {
        try ConfigReader(file: "rig.json5", text: Array(text.utf8))
    }

    private func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test("comments, bare keys and trailing commas are read, whole numbers stay whole")
    func json5() throws {
        var config = try reader("{ // a comment\n limit: 9007199254740993, name: 'x', }")
        #expect(try config.integer("limit", in: 0...Int64.max) == 9_007_199_254_740_993)
        #expect(try config.string("name") == "x")
        try config.finish()
    }

    @Test("an error names file, key, what was read and what is legal")
    func sentences() throws {
        var config = try reader("{ rate: 1000, mode: 'fast', streams: [{ id: 7 }] }")
        #expect(
            message { _ = try config.integer("rate", in: 1...240) }
                == "rig.json5: 'rate' is 1000; legal is a whole number from 1 to 240")
        #expect(
            message { let _: ChirpPreset = try config.word("mode") }
                == "rig.json5: 'mode' is 'fast'; legal is one of 'ultrasonic', 'audible', 'off', 'custom'")
        var first = try #require(try config.objects("streams").first)
        #expect(
            message { _ = try first.string("id", legal: "a name") }
                == "rig.json5: 'streams[0].id' is 7; legal is a name")
        #expect(message { _ = try config.string("absent") } == "rig.json5: 'absent' is missing; legal is a text")
    }

    @Test("a key that nobody knows is refused, with the keys that are known")
    func unknownKey() throws {
        var config = try reader("{ rate: 30, ratte: 30 }")
        _ = try config.integer("rate", in: 1...240)
        #expect(message { try config.finish() } == "rig.json5: 'ratte' is not a key here; legal keys are 'rate'")
    }

    @Test("what is no JSON5 is one sentence", arguments: ["", "{", "[1]", "{a:}", "nonsense", "{a:1}}"])
    func malformed(text: String) {
        #expect(message { _ = try reader(text) }.hasPrefix("rig.json5: "))
    }
}
