internal import Protocol

/// A request that isn't taken: a status and one sentence with what, where and the cure.
struct RequestProblem: Error, Sendable, CustomStringConvertible {
    let status: Int
    let sentence: String

    init(_ status: Int, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// What was asked for can't be done with this input.
    static func invalid(_ sentence: String) -> RequestProblem { RequestProblem(422, sentence) }

    var description: String { sentence }
}

extension HTTPResponse {
    /// A JSON answer.
    init(_ status: Int = 200, json: JSONValue) {
        // A JSONValue without NaN, as all of ours are, can always be written.
        let bytes = (try? JSONText.encode(json)) ?? Array("{}".utf8)
        self.init(status: status, body: .bytes(bytes + [0x0A]))
    }

    /// `{"detail": sentence}`, the shape in which the original server reports.
    init(problem: RequestProblem) {
        self.init(problem.status, json: .object(["detail": .string(problem.sentence)]))
        if problem.status == 503 { headers.append(("Retry-After", "10")) }
    }
}
