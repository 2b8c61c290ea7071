internal import Glibc
internal import Platform

/// What libFuzzer calls with each input; the parser is chosen by DOWNBEAT_FUZZ_TARGET.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    FuzzTarget.chosen.run(Array(UnsafeBufferPointer(start: data, count: size)))
    return 0
}

/// One parser of what comes from outside.
struct FuzzTarget: Sendable {
    let name: String
    let run: @Sendable ([UInt8]) -> Void

    static let all = inertial + bluetooth + messages

    static let chosen: FuzzTarget = {
        let name = getenv("DOWNBEAT_FUZZ_TARGET").map { String(cString: $0) } ?? ""
        if let target = all.first(where: { $0.name == name }) { return target }
        // For `Tests/Fuzz/run --list`: the program itself knows best.
        StandardOutput.write(all.map { "\($0.name)\n" }.joined())
        exit(name.isEmpty ? 0 : 3)
    }()

    /// Inputs cut where the first byte says, so that pieces over several readings are tried too.
    static func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        guard let first = bytes.first, bytes.count > 1 else { return [bytes] }
        let step = max(1, Int(first) % 64)
        return stride(from: 1, to: bytes.count, by: step).map { Array(bytes[$0..<min($0 + step, bytes.count)]) }
    }
}

/// Ends the program as a crash: a parser broke its promise.
func demand(_ condition: Bool, _ promise: String) {
    if !condition { fatalError(promise) }
}
