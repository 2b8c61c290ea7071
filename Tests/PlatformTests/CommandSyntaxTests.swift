internal import Platform
internal import Testing

/// glibc's getopt keeps its state in globals, so these run one after the other.
@Suite(.serialized) struct CommandSyntaxTests {
    let syntax = CommandSyntax(
        program: "downbeat record", summary: "Records a take.", operands: "EPISODE…",
        options: [
            CommandOption("duration", short: "d", value: "SECONDS", help: "how long"),
            CommandOption("json", help: "for programs"),
        ], example: "downbeat record --duration 10")

    @Test("options and operands by GNU's rules")
    func parses() throws {
        let parsed = try syntax.parse(["one", "--duration=5", "-d", "7", "--json", "--", "--two"])
        #expect(parsed.all("duration") == ["5", "7"])
        #expect(parsed.value("duration") == "7")
        #expect(parsed.has("json"))
        #expect(parsed.operands == ["one", "--two"])
        #expect(try syntax.parse(["--dur", "3"]).value("duration") == "3")
    }

    @Test(
        "what is wrong is named",
        arguments: [
            (["--durration", "3"], "'--durration' is not an option here"),
            (["x", "-z"], "'-z' is not an option here"),
            (["--duration"], "'--duration' needs a value"),
            (["--json=yes"], "'--json=yes' takes no value"),
        ])
    func problems(words: [String], message: String) {
        #expect {
            try syntax.parse(words)
        } throws: { error in
            "\(error)" == "downbeat record: \(message)\nTry 'downbeat record --help'."
        }
    }

    @Test("the help names each option and ends with an example")
    func help() {
        #expect(syntax.help.contains("  -d, --duration=SECONDS  how long\n"))
        #expect(syntax.help.hasSuffix("Example: downbeat record --duration 10\n"))
    }
}
