@main
struct DownbeatAgent {
    static func main() {}
}
