import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;

/** Launches the application for each line of stdin, and answers with the seconds from its first record to its last. */
public class Serve {
  public static void main(String[] arguments) {
    int code = 0;
    try {
      answer(Long.parseLong(arguments[0]), Integer.parseInt(arguments[1]));
    } catch (Throwable fault) {
      fault.printStackTrace();
      code = 1;
    }
    System.exit(code); // Apex leaves threads behind, which would keep the process alive
  }

  private static void answer(long blockSize, int readers) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
    for (String question; (question = questions.readLine()) != null; ) {
      String[] paths = question.split("\t");
      answers.println(new Ingest(paths[0], paths[1], paths[2], blockSize, readers).launch());
    }
  }
}
