@main
struct Downbeat {
    static func main() {}
}
