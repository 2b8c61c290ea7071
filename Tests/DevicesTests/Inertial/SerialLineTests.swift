internal import Devices
internal import TestSupport
internal import Testing
internal import Timing

@Suite("Lines of a serial sensor")
struct SerialLineTests {
    private static func lines(_ parts: [String], from assembler: inout LineAssembler) -> [String] {
        var lines: [String] = []
        for part in parts { assembler.take(Array(part.utf8)) { lines.append(String(decoding: $0, as: UTF8.self)) } }
        return lines
    }

    @Test("a line in pieces, and each way to end one; the first piece after an opening is left out")
    func assembling() {
        var assembler = LineAssembler()
        #expect(Self.lines(["f a line\nwh", "ole\r", "\n\r\nnext\rla"], from: &assembler) == ["whole", "next"])
        assembler.restart()
        #expect(Self.lines(["st\nafter\n"], from: &assembler) == ["after"])
    }

    @Test("a line without an end is cut off, and the next one is whole")
    func overlong() {
        var assembler = LineAssembler()
        let garbage = String(repeating: "x", count: 3 * LineAssembler.limit)
        #expect(Self.lines(["\n", garbage, "\n1,2\n"], from: &assembler) == ["1,2"])
        #expect(assembler.overlong == 1)
    }

    static let csv = LineLayout(
        format: .csv, prefix: Array("$IMU,".utf8),
        channels: [
            .init(name: "accel_x", unit: "m/s^2", place: .field(2), scale: 9.80665),
            .init(name: "temp", unit: "degC", place: .field(4), scale: 0.01, offset: -100),
        ],
        counter: .init(place: .field(1), shape: .microseconds32), sequence: .field(0))

    @Test(
        "CSV by its layout",
        arguments: [
            (
                "$IMU,7,4294967295,1,x,200",
                LineParser.Outcome.row(.init(values: [9.80665, 1], counter: 4_294_967_295, sequence: 7))
            ),
            ("$IMU, 8 ,0,\t-0.5 ,,100.0", .row(.init(values: [-4.903325, 0], counter: 0, sequence: 8))),
            ("$IMU,9,5,1e-1,,100", .row(.init(values: [0.980665, 0], counter: 5, sequence: 9))),
            ("$GPS,1,2,3,4,5", .other),
            ("#HB t_us=1 imu_ok=1", .other),
            ("$IMU,7,5,1,x", .damaged),
            ("$IMU,7,-5,1,x,200", .damaged),
            ("$IMU,7,5,0x10,x,200", .damaged),
            ("$IMU,7,5,nan,x,200", .damaged),
            ("$IMU,7,5,1,x,1e999", .damaged),
            ("$IMU,7.5,5,1,x,200", .row(.init(values: [9.80665, 1], counter: 5, sequence: 7))),
            ("$IMU,", .damaged),
        ])
    func csv(line: String, expected: LineParser.Outcome) {
        #expect(LineParser(Self.csv).parse(Array(line.utf8)) == expected)
    }

    @Test("blanks between fields, in any number")
    func blanks() {
        let layout = LineLayout(
            format: .csv, separator: 0x20, channels: [.init(name: "a", unit: "", place: .field(2))])
        #expect(LineParser(layout).parse(Array("1  2\t 3".utf8)) == .row(.init(values: [3])))
        #expect(LineParser(layout).parse(Array("ax ay az".utf8)) == .other)
    }

    @Test(
        "JSON by its paths",
        arguments: [
            (
                #"{"t":1.5,"acc":{"x":1,"y":[0,2.5]}}"#,
                LineParser.Outcome.row(.init(values: [1, 2.5], counter: 1_500_000_000))
            ),
            (
                #" { "acc" : {"y":[7,"-2e0"], "x":"3"} , "t": 2 } "#,
                .row(.init(values: [3, -2], counter: 2_000_000_000))
            ),
            (#"{"s":"}\"{","t":0.0000000019,"acc":{"x":1,"y":[0,1]}}"#, .row(.init(values: [1, 1], counter: 1))),
            (#"{"t":1,"acc":{"x":1}}"#, .damaged),
            (#"{"t":1,"acc":{"x":1,"y":[0,1]}"#, .damaged),
            (#"{"t":1,"acc":{"x":true,"y":[0,1]}}"#, .damaged),
            (#"{"t":1,"acc":{"x":1,"y":[0,1]}} 3"#, .damaged),
            (#"[[[[[[[[[[1]]]]]]]]]]"#, .other),
            ("hello", .other),
        ])
    func json(line: String, expected: LineParser.Outcome) {
        let layout = LineLayout(
            format: .json,
            channels: [
                .init(name: "x", unit: "", place: .key(Array("acc.x".utf8))),
                .init(name: "y", unit: "", place: .key(Array("acc.y.1".utf8))),
            ],
            counter: .init(
                place: .key(Array("t".utf8)), shape: CounterShape(bits: 64, ticksPerSecond: 1_000_000_000),
                ticksPerUnit: 1_000_000_000))
        #expect(LineParser(layout).parse(Array(line.utf8)) == expected)
    }

    @Test("numbers of up to 17 digits are read as the standard library reads them")
    func numbers() {
        var generator = SeededGenerator(seed: 11)
        let layout = LineLayout(format: .csv, channels: [.init(name: "a", unit: "", place: .field(0))])
        let parser = LineParser(layout)
        for _ in 0..<20_000 {
            let digits = Int.random(in: 1...17, using: &generator)
            var text = Bool.random(using: &generator) ? "-" : ""
            let point = Int.random(in: 0...digits, using: &generator)
            for place in 0..<digits {
                if place == point { text += place == 0 ? "0." : "." }
                text += String(Int.random(in: 0...9, using: &generator))
            }
            #expect(parser.parse(Array(text.utf8)) == .row(.init(values: [Double(text) ?? .nan])), "\(text)")
        }
    }

    @Test("no line of any bytes crashes the parser", arguments: 0..<8 as Range<UInt64>)
    func wild(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("{}[]\":,.-+eE0123456789 \t\\$IMUacxyt\u{0}".utf8) + [0xFF, 0x80]
        let json = LineLayout(
            format: .json, channels: [.init(name: "x", unit: "", place: .key(Array("acc.x".utf8)))])
        let parsers = [LineParser(Self.csv), LineParser(json)]
        for _ in 0..<4000 {
            let count = Int.random(in: 0...80, using: &generator)
            var line = Bool.random(using: &generator) ? Array("$IMU,".utf8) : Array("{\"acc\":".utf8)
            for _ in 0..<count { line.append(alphabet.randomElement(using: &generator) ?? 0) }
            for parser in parsers { _ = parser.parse(line) }
        }
    }
}
