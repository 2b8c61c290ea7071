internal import Platform
internal import TestSupport
internal import Testing

@testable internal import Episode

@Suite struct QualifiedNamesTests {
    typealias Source = QualifiedNames.Source

    @Test func plainNames() {
        let names = QualifiedNames([Source(host: "bench", stream: "cam"), Source(host: "desk", stream: "cam")])
        #expect(names[Source(host: "bench", stream: "cam")] == "bench.cam")
        #expect(names[Source(host: "desk", stream: "cam")] == "desk.cam")
        #expect(names[Source(host: "desk", stream: "mic")] == nil)
    }

    @Test(arguments: [
        // Where the dot falls.
        (Source(host: "a", stream: "b.c"), Source(host: "a.b", stream: "c"), "a.b.c", "a.b.c~2"),
        // A sensor's rows and another's time stamps would be one file.
        (Source(host: "h", stream: "cam"), Source(host: "h.cam", stream: "timestamps"), "h.cam", "h.cam.timestamps~2"),
        // One letter in two spellings is two names.
        (
            Source(host: "h", stream: "\u{E9}"), Source(host: "h", stream: "e\u{301}"), "h.\u{E9}", "h.e\u{301}"
        ),
        (Source(host: "..", stream: "../x"), Source(host: "h", stream: "a/b"), "%2E..%2E.%2Fx", "h.a%2Fb"),
    ])
    func namesThatCouldMeet(first: Source, second: Source, firstName: String, secondName: String) {
        let names = QualifiedNames([second, first])
        #expect(names[first].map { Array($0.utf8) } == Array(firstName.utf8))
        #expect(names[second].map { Array($0.utf8) } == Array(secondName.utf8))
    }

    /// Whatever hosts and streams there are: no two streams share a file, and no file leaves its folder.
    @Test func noTwoStreamsEverMeet() {
        var random = SeededGenerator(seed: 1)
        // Few letters, so that names meet often.
        let letters = [
            "a", "b", ".", "~2", "timestamps", "sync_point", "/", "..", " ", "é", "e\u{301}", "中", "👩‍🔬", "%", "\n", "-",
        ]
        for _ in 0..<2_000 {
            var sources: [Source] = []
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                func word() -> String {
                    (0..<Int.random(in: 0...4, using: &random))
                        .map { _ in letters[Int.random(in: 0..<letters.count, using: &random)] }.joined()
                }
                sources.append(Source(host: word(), stream: word()))
            }
            let hosts = Set(sources.map { Array($0.host.utf8) })
            let reserved = sources.map { QualifiedNames.safe($0.host) + ".sync_point" }
            let names = QualifiedNames(sources, reserved: reserved)
            var files: [[UInt8]: Source] = [:]
            for source in Set(sources) {
                guard let name = names[source] else {
                    Issue.record("\(source) has no name")
                    continue
                }
                for file in ["\(name).mp4", "\(name).wav", "\(name).jsonl", "\(name).timestamps.jsonl"] {
                    #expect(FilePath.staysInside(file) && !file.contains("/"))
                    #expect(file.utf8.first != UInt8(ascii: "."))
                    let other = files.updateValue(source, forKey: Array(file.utf8))
                    #expect(other == nil || other == source)
                }
                #expect(!reserved.contains { $0.utf8.elementsEqual(name.utf8) })
            }
            // The order in which they come makes no difference.
            let again = QualifiedNames(sources.reversed(), reserved: reserved)
            #expect(sources.allSatisfy { again[$0] == names[$0] })
            #expect(hosts.count <= sources.count)
        }
    }

    @Test func longNamesFitAFileName() throws {
        let long = String(repeating: "中", count: 100)
        let sources = [Source(host: long, stream: "a"), Source(host: long, stream: "b")]
        let names = QualifiedNames(sources)
        let both = try sources.map { try #require(names[$0]) }
        #expect(both[0] != both[1])
        #expect(both.allSatisfy { "\($0).timestamps.jsonl".utf8.count <= 255 })
    }
}
